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

# Of a string, from anywhere but behind a backslash; an unterminated one ends with the body.
_INSIDE = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
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
    if b"\\u" in body and _SURROGATE_ESCAPE.search(body):
        _refuse_lone_surrogates(value)
    return value


def _check_structure(body: bytes, limits: HttpLimits) -> None:
    most = _STRINGS_FOR_A_CONTAINER * limits.max_json_containers
    found: list[bytes] = []  # between strings
    end = strings = 0
    while strings <= most and (start := body.find(b'"', end)) >= 0:
        found += _brackets(body, end, start)
        end = _end_of_string(body, start + 1)
        strings += 1
    if strings <= most:
        found += _brackets(body, end, len(body))
    brackets = b"".join(found)
    if brackets.count(b"[") + brackets.count(b"{") > limits.max_json_containers:
        raise MalformedJson(
            f"The JSON holds more arrays and objects than the limit of {limits.max_json_containers}."
        )
    paired = brackets[: 2 * limits.max_json_containers]  # more of them close nothing
    if max(accumulate(map(_STEP.__getitem__, paired)), default=0) > limits.max_json_depth:
        raise MalformedJson(f"The JSON is nested deeper than the limit of {limits.max_json_depth} levels.")
    if strings > most:
        raise MalformedJson(f"The JSON holds more strings than the limit of {most}.")


def _end_of_string(body: bytes, place: int) -> int:
    """Behind the quote that ends a string; other threads run between windows of a long one."""
    while match := _INSIDE.match(body, place, place + _WINDOW):
        before, place = place, match.end()
        if place == len(body) or body[place : place + 1] == b'"':
            return min(place + 1, len(body))
        if place == before:
            break
    return len(body)


def _brackets(body: bytes, start: int, end: int) -> Iterator[bytes]:
    """Of a part without strings; other threads run between windows of it."""
    for first in range(start, end, _WINDOW):
        yield body[first : min(first + _WINDOW, end)].translate(None, _NOT_BRACKETS)


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
