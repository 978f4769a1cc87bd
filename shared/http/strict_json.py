"""Strict JSON: one meaning, whoever reads it, and no more work than its size suggests.

Refused besides what is not JSON: NaN and Infinity (also by overflow, 1e999), duplicate keys (two parsers
would disagree on which one counts), lone surrogates (no UTF-8 form), deep nesting, very many containers.
"""

import json
import math
import re
from itertools import accumulate
from typing import Any, NoReturn

from ttmark.shared.http.limits import HttpLimits
from ttmark.shared.http.service_errors import MalformedJson

# An unterminated string runs to the end: were it no match, each escaped quote would start the search anew.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
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
            object_pairs_hook=_unique_keys,
        )
    except UnicodeDecodeError:
        raise MalformedJson("The body is not valid UTF-8.") from None
    except json.JSONDecodeError as error:
        raise MalformedJson(f"The body is not valid JSON: {error.msg} at character {error.pos}.") from None
    except ValueError:
        raise MalformedJson("The JSON holds a number with too many digits.") from None
    if _SURROGATE_ESCAPE.search(body):
        _refuse_lone_surrogates(value)
    return value


def _check_structure(body: bytes, limits: HttpLimits) -> None:
    brackets = _STRING.sub(b"", body).translate(None, _NOT_BRACKETS)
    if brackets.count(b"[") + brackets.count(b"{") > limits.max_json_containers:
        raise MalformedJson(
            f"The JSON holds more arrays and objects than the limit of {limits.max_json_containers}."
        )
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > limits.max_json_depth:
        raise MalformedJson(f"The JSON is nested deeper than the limit of {limits.max_json_depth} levels.")


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
