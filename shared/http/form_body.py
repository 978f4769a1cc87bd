"""Forms with files (`multipart/form-data`, RFC 7578): taken apart in one way, or refused.

Of two fields with one name, bytes before the first field or in another transfer encoding, two readers would
make different things; nobody who means well sends them.
"""

import re
from collections.abc import Iterator
from typing import TypedDict

from ttmark.shared.http.service_errors import MalformedForm

FORM_TYPE = "multipart/form-data"
_MOST_FIELDS = 16
_MOST_HEAD_BYTES = 4_096
_BOUNDARY = re.compile(r';\s*boundary=(?:"([^"\r\n]{1,70})"|([^\s;"]{1,70}))\s*(?:;|\Z)', re.IGNORECASE)
_PARAMETER = re.compile(r';\s*([a-z]+\*?)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))', re.IGNORECASE)
_AS_IT_IS = ("binary", "8bit", "7bit")
# What browsers and clients write for what would end a name.
_ESCAPES = (("%22", '"'), ("%0D", "\r"), ("%0A", "\n"), ('\\"', '"'))


class FormField(TypedDict):
    """One field; `filename` is None where it is no file."""

    filename: str | None
    content: bytes


def parse_form(content_type: str, body: bytes) -> dict[str, FormField]:
    """The fields of a form by their names.

    Args:
        content_type: of the request, which names the boundary.

    Raises:
        MalformedForm: see the module's docstring for what is refused; the message says which.
    """
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise MalformedForm(f"Content-Type names no boundary: send {FORM_TYPE} as HTTP libraries write it.")
    mark = b"--" + (boundary[1] or boundary[2]).encode("latin-1", "replace")
    if not body.startswith(mark):
        raise MalformedForm("The body does not begin with the boundary that Content-Type names.")
    *fields, end = body[len(mark) :].split(b"\r\n" + mark, _MOST_FIELDS + 1)
    if len(fields) > _MOST_FIELDS:
        raise MalformedForm(f"The form has more fields than the limit of {_MOST_FIELDS}.")
    if end.rstrip(b"\r\n") != b"--":
        raise MalformedForm("The form is cut off, or something follows its end.")
    found: dict[str, FormField] = {}
    for name, field in map(_field, fields):
        if name in found:
            raise MalformedForm("The form has two fields of one name; send a request for each file.")
        found[name] = field
    return found


def _field(part: bytes) -> tuple[str, FormField]:
    """A part, from behind its boundary, as a field and its name."""
    end = part.find(b"\r\n\r\n", 0, _MOST_HEAD_BYTES)
    if end < 0 or not part.startswith(b"\r\n"):
        raise MalformedForm("A field of the form has no head, or a longer one than is read.")
    head = dict(_headers(part[2:end].decode("utf-8", "replace")))
    kind, parameters = head.get("content-disposition", "").partition(";")[::2]
    said = dict(_parameters(";" + parameters))
    if kind.strip().lower() != "form-data" or "name" not in said:
        raise MalformedForm("A field of the form has no name.")
    if head.get("content-transfer-encoding", _AS_IT_IS[0]).lower() not in _AS_IT_IS:
        raise MalformedForm("A field of the form is encoded for transfer: send its bytes as they are.")
    return said["name"], FormField(filename=said.get("filename"), content=part[end + 4 :])


def _headers(head: str) -> Iterator[tuple[str, str]]:
    for line in head.split("\r\n"):
        name, _, value = line.partition(":")
        yield name.strip().lower(), value.strip()


def _parameters(text: str) -> Iterator[tuple[str, str]]:
    for name, quoted, plain in _PARAMETER.findall(text):
        value = quoted or plain
        for escape, character in _ESCAPES:
            value = value.replace(escape, character)
        yield name.lower(), value
