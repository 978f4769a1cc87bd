"""Request bodies: read within limits, and strict JSON or a 4xx, before any route sees them.

Refused besides what is not JSON: NaN and Infinity (also by overflow, 1e999), duplicate keys (two parsers
would disagree on which one counts), lone surrogates (no UTF-8 form), deep nesting, and compressed bodies (no
decompression, so no bombs).
"""

import asyncio
import json
import math
import re
from itertools import accumulate
from typing import Any, NoReturn

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.http.error_format import ErrorRenderer
from shared.http.errors import MalformedJson, RequestTimeout, ServiceError, TooLarge, UnsupportedMediaType
from shared.http.limits import HttpLimits

PARSED_JSON = "parsed_json"
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_JSON_TYPE = re.compile(r"application/(?:json|[\w.+-]+\+json)", re.IGNORECASE)
# An unterminated string runs to the end: were it no match, each escaped quote would start the search anew.
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}


class JsonBodyMiddleware:
    """Reads the body, refuses it or hands it on, whole and parsed; an empty body passes."""

    def __init__(self, app: ASGIApp, limits: HttpLimits, render: ErrorRenderer) -> None:
        self.app = app
        self.limits = limits
        self.render = render

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _METHODS_WITH_BODY:
            await self.app(scope, receive, send)
            return
        try:
            body = await self._read(scope, receive)
        except ServiceError as error:
            await self.render(error, scope)(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes:
        headers = Headers(scope=scope)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise UnsupportedMediaType("Send the body uncompressed: Content-Encoding is not supported.")
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                body = await _read_within(headers, receive, self.limits.max_body_bytes)
        except TimeoutError:
            seconds = self.limits.body_seconds
            raise RequestTimeout(f"The body did not arrive within {seconds:g} seconds.") from None
        if body:
            media_type = headers.get("content-type", "").partition(";")[0].strip()
            if not _JSON_TYPE.fullmatch(media_type):
                raise UnsupportedMediaType("The body must be JSON: send Content-Type: application/json.")
            scope["state"][PARSED_JSON] = parse_json(body, self.limits)
        return body


async def _read_within(headers: Headers, receive: Receive, limit: int) -> bytes:
    error = TooLarge(f"The body is larger than the limit of {limit} bytes.")
    declared = headers.get("content-length", "0")
    if declared.isdecimal() and int(declared[:20]) > limit:
        raise error
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > limit:
            raise error
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed


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
