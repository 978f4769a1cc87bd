"""Case files: written by a service, read by `ttmark case verify`. One byte that differs is one too many.

A JSON case has one spelling: keys sorted, indented by two spaces, a line end at the end. Another spelling of
the same values is refused, so that every byte of the file counts. A page ends with a comment that signs all
that stands before it.
"""

import json
import re
from typing import Any

from ttmark.shared.cases.case_key import CaseKey, CasePublicKey

Case = dict[str, Any]

FORMAT = "ttmark-case/1"
# Names of what is signed: a signature of one kind of file is none of the other.
_CASE, _PAGE = b"ttmark case\0", b"ttmark case page\0"
CASE_START = "{"
"""Of a json case; a page begins otherwise."""
_PAGE_START = b"<!doctype html>"
# What `_spelt` makes of a case and its signature: the case is what it is by itself, two spaces further in.
_FILE = re.compile(r'\{\n  "case": (.*),\n  "signature": "([0-9a-f]{128})"\n\}\n', re.S)
_CASE_IN_PAGE = re.compile(r'<script type="application/json" id="case">(.*?)</script>', re.S)
_SIGNATURE = re.compile(rb"<!-- ttmark-signature ([0-9a-f]{128}) -->\n\Z")


class CaseRefused(ValueError):
    """The file is not a case as the service wrote it."""


def case_file(case: Case, key: CaseKey) -> str:
    """The JSON file of a case."""
    return _spelt({"case": case, "signature": key.sign(_CASE + _spelt(case).encode()).hex()})


def case_page(before: str, case: Case, after: str, key: CaseKey) -> str:
    """The page of a case: html with the case itself between `before` and `after`, signed as a whole."""
    # Inside a script a `<` could end it.
    data = _spelt(case).replace("<", "\\u003c")
    page = f'{before}<script type="application/json" id="case">{data}</script>{after}'
    return f"{page}<!-- ttmark-signature {key.sign(_PAGE + page.encode()).hex()} -->\n"


def verified_case(content: bytes, key: CasePublicKey) -> Case:
    """The case in a file of either kind.

    Raises:
        CaseRefused: it is not signed with `key`, or was changed since.
    """
    if content.startswith(_PAGE_START):
        return _case_of_page(content, key)
    try:
        text = content.decode()
        parts = _FILE.fullmatch(text)
        if parts is None:
            raise CaseRefused(_RESPELT if {"case", "signature"} <= set(json.loads(text)) else _NO_CASE)
        indented, signature = parts.groups()
        case = indented.replace("\n  ", "\n")
        if case.replace("\n", "\n  ") != indented:
            raise CaseRefused(_RESPELT)
        # Before anything is spelt: what is not genuine costs next to nothing.
        if not key.signed(_CASE + case.encode() + b"\n", bytes.fromhex(signature)):
            raise CaseRefused(_by_whom(json.loads(case), key))
        return _known(json.loads(case))
    except (UnicodeError, ValueError, TypeError, RecursionError) as error:
        if isinstance(error, CaseRefused):
            raise
        raise CaseRefused(_NO_CASE) from error


def _case_of_page(content: bytes, key: CasePublicKey) -> Case:
    found = _SIGNATURE.search(content)
    if found is None:
        raise CaseRefused("the page ends without a signature")
    if not key.signed(_PAGE + content[: found.start()], bytes.fromhex(found[1].decode())):
        raise CaseRefused(_CHANGED.format(name=key.name))
    data = _CASE_IN_PAGE.search(content.decode())
    if data is None:
        raise CaseRefused("the page holds no case")
    return _known(json.loads(data[1]))


_NO_CASE = "this is not a case file"
_RESPELT = "the file was changed after it was signed, if only in its spacing"
_CHANGED = "it was not signed with the key {name}, or was changed since"


def _by_whom(case: Any, key: CasePublicKey) -> str:
    named = case.get("signing_key") if isinstance(case, dict) else None
    if isinstance(named, str) and named != key.name:
        return f"it names the key {named}, and this is {key.name}: get the public key of its service"
    return _CHANGED.format(name=key.name)


def _known(case: Any) -> Case:
    if not isinstance(case, dict) or case.get("format") != FORMAT:
        raise CaseRefused(f"it is signed, but its format is not {FORMAT}: a newer `ttmark` may read it")
    return case


def _spelt(value: object) -> str:
    return json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n"
