"""Strict JSON: one meaning, whoever reads it, and no more work than its size suggests.

Refused besides what is not JSON: NaN and Infinity (also by overflow, 1e999), duplicate keys (two parsers
would disagree on which one counts), lone surrogates (no UTF-8 form), deep nesting, very many
containers or strings.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, NoReturn

from ttmark.shared.http.limits import HttpLimits
from ttmark.shared.http.service_errors import MalformedJson

_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
# Each takes an object of its own while brackets are counted.
_STRINGS_FOR_A_CONTAINER = 10
_LONG_BYTES = 262_144
_WINDOW = 65_536
_MOST_KNOWN = 16_384
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


def parse_json(body: bytes, limits: HttpLimits) -> Any:
    """The value of a strict JSON text.

    Raises:
        MalformedJson: see the module's docstring for what is refused; the message says which.
    """
    _check_structure(body, limits)
    try:
        text = body.decode("utf-8")
        value = json.loads(
            text,
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            parse_int=_integers() if len(body) > _LONG_BYTES else None,
            object_pairs_hook=_unique_keys,
        )
    except UnicodeDecodeError:
        raise MalformedJson("The body is not valid UTF-8.") from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"The body is not valid JSON: {error.msg} at character {error.pos}.") from None
    except ValueError:
        raise MalformedJson("The JSON holds a number with too many digits.") from None
    if b"\\" in body and _SURROGATE_ESCAPE.search(body):
        _refuse_lone_surrogates(value)
    return value


def _check_structure(body: bytes, limits: HttpLimits) -> None:
    if b"\\" in body:  # escaped backslashes first: what is left before a quote escapes it
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    most = _STRINGS_FOR_A_CONTAINER * limits.max_json_containers
    parts = body.split(b'"', 2 * most + 1)  # every second one is a string
    brackets = b"".join(window for part in parts[::2] for window in _brackets(part))
    if brackets.count(b"[") + brackets.count(b"{") > limits.max_json_containers:
        raise MalformedJson(
            f"The JSON holds more arrays and objects than the limit of {limits.max_json_containers}."
        )
    paired = brackets[: 2 * limits.max_json_containers]  # more of them close nothing
    if max(accumulate(map(_STEP.__getitem__, paired)), default=0) > limits.max_json_depth:
        raise MalformedJson(f"The JSON is nested deeper than the limit of {limits.max_json_depth} levels.")
    if len(parts) > 2 * most + 1:
        raise MalformedJson(f"The JSON holds more strings than the limit of {most}.")


def _brackets(part: bytes) -> Iterator[bytes]:
    """Of a part without strings; other threads run between windows of it."""
    for start in range(0, len(part), _WINDOW):
        yield part[start : start + _WINDOW].translate(None, _NOT_BRACKETS)


def _integers() -> Callable[[str], int]:
    """Reads integers, in Python, so that other threads run meanwhile; equal ones are mostly one object."""
    known: dict[str, int] = {}

    def integer(digits: str) -> int:
        value = known.get(digits)
        if value is None:
            value = int(digits)
            if len(known) < _MOST_KNOWN:
                known[digits] = value
        return value

    return integer


def _refuse_constant(_: str) -> NoReturn:
    raise MalformedJson("JSON has no NaN and no Infinity.")


def _finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise MalformedJson("The JSON holds a number that is too large.")
    return number


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise MalformedJson("An object in the JSON has the same key twice.")
    return members


def _refuse_lone_surrogates(value: Any) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedJson("A string in the JSON holds a lone surrogate: not a character.") from None
