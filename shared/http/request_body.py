"""Request bodies: read within limits, and strict JSON, a form or a 4xx, before any route sees them.

Compressed bodies are refused: without decompression there are no bombs. Of each tenant few long bodies are
taken in at a time, and the others wait unread but for their beginning. Who has a turn sends at a least rate.

Strict JSON has one meaning, whoever reads it, and costs no more work than its size suggests. Refused besides
what is not JSON: NaN and Infinity (also by overflow, 1e999), duplicate keys (two parsers would disagree on
which one counts), lone surrogates (no UTF-8 form), deep nesting, very many containers or strings.
"""

import asyncio
import codecs
import json
import math
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NoReturn, TypeVar
from weakref import WeakValueDictionary

import numpy as np
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ttmark.shared.access.scopes import Scope as AccessScope
from ttmark.shared.http.auth import check_scope
from ttmark.shared.http.form_body import FORM_TYPE, parse_form
from ttmark.shared.http.service_errors import (
    ErrorRenderer,
    MalformedJson,
    RequestTimeout,
    ServiceError,
    TooLarge,
    TooManyParts,
    UnsupportedMediaType,
)


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits on request bodies.

    Attributes:
        max_body_bytes: size of a body; more is a 413.
        body_seconds: time a client may take to send its body; more is a 408.
        least_body_rate: bytes a second at which the rest of a long body has to arrive once it is its sender's
            turn; less is a 408.
        max_json_depth: nesting of arrays and objects; more is a 400.
        max_json_containers: number of arrays and objects; more is a 413: empty ones take a parser long.
        takes_forms: a body is a form with a file (`form_body.py`), and no JSON.
        of_path: limits of single paths, in place of these.
    """

    max_body_bytes: int = 2 * 1024 * 1024
    body_seconds: float = 30.0
    least_body_rate: int = 65_536
    max_json_depth: int = 32
    max_json_containers: int = 10_000
    takes_forms: bool = False
    of_path: Mapping[str, "HttpLimits"] = field(default_factory=dict)

    def of(self, path: str) -> "HttpLimits":
        return self.of_path.get(path, self)


JOBS_TAKE_MORE = "Parts of a longer one can be asked about in a job (`ttmark jobs submit`, /v1/detect/jobs)."
# Before a least rate is asked for.
_GRACE_SECONDS = 1.0


class IncomingBody:
    """A body within limits.

    Attributes:
        complete: whether all of it has arrived.
        size: bytes that have.

    Raises:
        TooLarge: its declared length is over the limit.
    """

    def __init__(self, headers: Headers, receive: Receive, limits: HttpLimits) -> None:
        self.complete = False
        self._receive = receive
        self._limits = limits
        self._chunks: list[bytes] = []
        self.size = 0
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared[:20]) > limits.max_body_bytes:
            raise self._too_large()

    async def read(self, enough: int, least_rate: int = 0) -> None:
        """Reads until it is complete or more than `enough` bytes have arrived.

        Args:
            least_rate: bytes a second that have to arrive, on average from now on; 0: any.

        Raises:
            TooLarge: it is over the limit.
            RequestTimeout: it comes too slowly, or takes longer than the limit from now on.
            ClientDisconnect: the sender has gone.
        """
        clock = asyncio.get_running_loop().time
        began, before, most = clock(), self.size, self._limits.body_seconds
        while not self.complete and self.size <= enough:
            seconds = most
            if least_rate:
                seconds = min(most, _GRACE_SECONDS + (self.size - before) / least_rate)
            try:
                async with asyncio.timeout_at(began + seconds):
                    await self._read_once()
            except TimeoutError:
                if seconds < most:
                    raise RequestTimeout(
                        f"A long body has to arrive at {least_rate} bytes a second or more."
                    ) from None
                raise RequestTimeout(f"The body did not arrive within {most:g} seconds.") from None

    def content(self) -> bytes:
        """What has arrived; it is not held any longer."""
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)

    async def _read_once(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        self.size += len(chunk)
        if self.size > self._limits.max_body_bytes:
            raise self._too_large()
        self._chunks.append(chunk)
        self.complete = not message.get("more_body", False)

    def _too_large(self) -> TooLarge:
        elsewhere = f" {JOBS_TAKE_MORE}" if self._limits.takes_forms else ""
        return TooLarge(
            f"The body is larger than the limit of {self._limits.max_body_bytes} bytes.{elsewhere}"
        )


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
        raise problem
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


def _problem(body: bytes, limits: HttpLimits) -> ServiceError | None:
    if b"\\" in body:
        body = b"".join(_unescaped(body))
    most = _STRINGS_FOR_A_CONTAINER * limits.max_json_containers
    # By numpy, which lets other threads run: to split a long body takes ten milliseconds.
    found = np.flatnonzero(np.frombuffer(body, dtype=np.uint8) == ord('"'))
    if len(found) > 2 * most:
        return TooManyParts("strings", most)
    quotes = found.tolist()
    # From where a string ended to where the next one begins.
    between = zip([0, *quotes[1::2]], [*quotes[::2], len(body)], strict=False)
    brackets = b"".join(window for start, end in between for window in _brackets(body, start, end))
    if brackets.count(b"[") + brackets.count(b"{") > limits.max_json_containers:
        return TooManyParts("arrays and objects", limits.max_json_containers)
    paired = brackets[: 2 * limits.max_json_containers]  # more of them close nothing
    if max(accumulate(map(_STEP.__getitem__, paired)), default=0) > limits.max_json_depth:
        return MalformedJson(f"The JSON is nested deeper than the limit of {limits.max_json_depth} levels.")
    return None


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
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, dict):
            waiting += [*one, *one.values()]


PARSED_BODY = "parsed_body"
BODY_BYTES = "body_bytes"
# Parsing less takes less time than handing it to another thread and back.
LONG_BODY_BYTES = 32_768
_LONG_BODIES_AT_ONCE = 2
RunLong = Callable[[Request, int, Callable[[], Any]], Awaitable[Any]]
"""Request, bytes of its body, work that grows with them -> what the work gives; off the event loop."""
_METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_JSON_TYPE = re.compile(r"application/(?:json|[\w.+-]+\+json)", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class BodyMiddleware:
    """Reads the body, refuses it or hands it on, whole and parsed; an empty body passes.

    `scopes` says what the callers of some paths need: without it, their bodies are not read.
    """

    app: ASGIApp
    limits: HttpLimits
    render: ErrorRenderer
    run_long: RunLong | None = None
    scopes: Mapping[str, AccessScope] = field(default_factory=dict)
    _turns: WeakValueDictionary[str, asyncio.Semaphore] = field(
        default_factory=WeakValueDictionary, init=False
    )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] not in _METHODS_WITH_BODY:
            await self.app(scope, receive, send)
            return
        try:
            needed, caller = self.scopes.get(scope["path"]), scope["state"].get("principal")
            if needed is not None and caller is not None:
                check_scope(caller, needed)
            body = await self._taken_in(scope, receive)
        except ServiceError as error:
            await self.render(error, scope)(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _taken_in(self, scope: Scope, receive: Receive) -> bytes:
        """The body, which is parsed; a tenant's turn is taken once more has come than a short one has."""
        limits = self.limits.of(scope["path"])
        headers = Headers(scope=scope)
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise UnsupportedMediaType("Send the body uncompressed: Content-Encoding is not supported.")
        incoming = IncomingBody(headers, receive, limits)
        await incoming.read(LONG_BODY_BYTES)
        if incoming.complete and incoming.size <= LONG_BODY_BYTES:
            return await self._parsed(incoming, scope, receive, limits)
        async with self._turn(scope):
            await incoming.read(limits.max_body_bytes, limits.least_body_rate)
            return await self._parsed(incoming, scope, receive, limits)

    def _turn(self, scope: Scope) -> AbstractAsyncContextManager[None]:
        """A tenant's turn to send the rest of a long body."""
        caller = scope["state"].get("principal")
        if caller is None:
            return nullcontext()
        turns = self._turns.get(caller.line)
        if turns is None:
            turns = self._turns[caller.line] = asyncio.Semaphore(_LONG_BODIES_AT_ONCE)
        return turns

    async def _parsed(
        self, incoming: IncomingBody, scope: Scope, receive: Receive, limits: HttpLimits
    ) -> bytes:
        if not incoming.size:
            return b""
        content_type = Headers(scope=scope).get("content-type", "")
        media_type = content_type.partition(";")[0].strip()
        if limits.takes_forms and media_type.lower() != FORM_TYPE:
            raise UnsupportedMediaType(f"The body must be a form with a file: send {FORM_TYPE}.")
        if not limits.takes_forms and not _JSON_TYPE.fullmatch(media_type):
            raise UnsupportedMediaType("The body must be JSON: send Content-Type: application/json.")
        scope["state"][BODY_BYTES] = incoming.size

        def parse() -> bytes:
            body = incoming.content()
            if limits.takes_forms:
                scope["state"][PARSED_BODY] = parse_form(content_type, body)
                return b""  # whoever reads it again would hold a file twice
            scope["state"][PARSED_BODY] = parse_json(body, limits)
            return body

        if self.run_long is None or incoming.size <= LONG_BODY_BYTES:
            return parse()
        body: bytes = await self.run_long(Request(scope, receive), incoming.size, parse)
        return body


def _replay(body: bytes, receive: Receive) -> Receive:
    pending: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return pending.pop() if pending else await receive()

    return replayed


Result = TypeVar("Result")


async def unless_disconnected(receive: Receive, work: Coroutine[Any, Any, Result]) -> Result:
    """The result of `work`, which is cancelled as soon as the client closes the connection.

    Raises:
        ClientDisconnect: the client has gone.
    """
    task = asyncio.create_task(work)
    watcher = asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait({task, watcher}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        task.cancel()
        watcher.cancel()
        await asyncio.gather(task, watcher, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
