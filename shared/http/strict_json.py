"""Strict JSON: one meaning, whoever reads it, and no more work than its size suggests.

Refused besides what is not JSON: NaN and Infinity (also by overflow, 1e999), duplicate keys (two parsers
would disagree on which one counts), lone surrogates (no UTF-8 form), deep nesting, very many
containers or strings.
"""

import codecs
import json
import math
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Any, NoReturn

import numpy as np

from ttmark.shared.http.incoming_body import HttpLimits
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
    problem = _problem(body, limits)
    if problem:  # raised here: what was counted is not held by the traceback
        raise MalformedJson(problem)
    try:
        value = json.loads(
            _decoded(body),
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


def _problem(body: bytes, limits: HttpLimits) -> str:
    """What is wrong with brackets and strings; empty: nothing."""
    if b"\\" in body:
        body = b"".join(_unescaped(body))
    most = _STRINGS_FOR_A_CONTAINER * limits.max_json_containers
    # By numpy, which lets other threads run: to split a long body takes ten milliseconds.
    quotes = np.flatnonzero(np.frombuffer(body, dtype=np.uint8) == ord('"'))[: 2 * most + 1].tolist()
    # From where a string ended to where the next one begins.
    between = zip([0, *quotes[1::2]], [*quotes[::2], len(body)], strict=False)
    brackets = b"".join(window for start, end in between for window in _brackets(body, start, end))
    if brackets.count(b"[") + brackets.count(b"{") > limits.max_json_containers:
        return f"The JSON holds more arrays and objects than the limit of {limits.max_json_containers}."
    paired = brackets[: 2 * limits.max_json_containers]  # more of them close nothing
    if max(accumulate(map(_STEP.__getitem__, paired)), default=0) > limits.max_json_depth:
        return f"The JSON is nested deeper than the limit of {limits.max_json_depth} levels."
    if len(quotes) > 2 * most:
        return f"The JSON holds more strings than the limit of {most}."
    return ""


def _unescaped(body: bytes) -> Iterator[bytes]:
    """A body without escaped backslashes and quotes; other threads run between windows of it."""
    start = 0
    while start < len(body):
        end = start + _WINDOW
        while body[end - 1 : end] == b"\\":  # up to what it escapes
            following = body[end : end + _WINDOW]
            end += len(following) - len(following.lstrip(b"\\")) + 1
        # Escaped backslashes first: what is left before a quote escapes it.
        yield body[start:end].replace(rb"\\", b"").replace(rb"\"", b"")
        start = end


def _decoded(body: bytes) -> str:
    """A body's text; other threads run between windows of what is not ASCII."""
    if body.isascii():
        return body.decode("ascii")
    decode = codecs.getincrementaldecoder("utf-8")().decode
    windows = [decode(body[start : start + _WINDOW]) for start in range(0, len(body), _WINDOW)]
    return "".join([*windows, decode(b"", final=True)])


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
        for text in _strings(value):
            for start in range(0, len(text), _WINDOW):  # other threads run between windows
                text[start : start + _WINDOW].encode("utf-8")
    except UnicodeEncodeError:
        raise MalformedJson("A string in the JSON holds a lone surrogate: not a character.") from None


def _strings(value: Any) -> Iterator[str]:
    """Names and values."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]
