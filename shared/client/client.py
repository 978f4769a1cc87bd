"""A synchronous and an asynchronous client of the generation and the detection service.

Calls with one answer are described in `calls.py` alone, arguments and docstrings included; `_answered` makes
methods of them. What a method does stands in `AsyncClient` alone: `Client` runs the same methods over calls
that block, so that they never wait for a loop and are done at their first step.
"""

import asyncio
import inspect
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, cast, get_args, overload

import httpx

from ttmark.shared.client import calls, outcomes
from ttmark.shared.client.calls import AnyAnswer, Call, Fields
from ttmark.shared.client.outcomes import Attempt, OnWait, attempts, parsed, parsed_event, unanswered
from ttmark.shared.outgoing import DEADLINE, MOST_BYTES, Deadline, blocking, http_client, loop_of_calls
from ttmark.shared.schemas.detection.detect import (
    CombinedRequest,
    CombinedResponse,
    DetectionRequest,
    DetectionResponse,
)
from ttmark.shared.schemas.detection.jobs import JobResult, JobStatus
from ttmark.shared.schemas.generation.chat import ChatChunk, ChatRequest

P = ParamSpec("P")
T = TypeVar("T")


def _answered(
    call: Callable[P, Call[AnyAnswer]],
) -> Callable[Concatenate["AsyncClient", P], Coroutine[Any, Any, AnyAnswer]]:
    """A method with the name, the docstring and, for `inspect`, the arguments of a call."""

    async def method(self: "AsyncClient", /, *args: P.args, **kwargs: P.kwargs) -> AnyAnswer:
        return await self._answer(call(*args, **kwargs))

    own, signature = inspect.signature(method).parameters["self"], inspect.signature(call)
    (answer,) = get_args(signature.return_annotation)
    described: Any = wraps(call)(method)
    described.__signature__ = signature.replace(
        parameters=[own.replace(annotation=own.empty), *signature.parameters.values()],
        return_annotation=answer,
    )
    return method


def _now(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Client", P], T]:
    """A method of `AsyncClient` as one that blocks."""

    @wraps(method)
    def blocking(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return _finished(method(self, *args, **kwargs))

    return blocking


def _each(
    method: Callable[Concatenate[Any, P], AsyncGenerator[T, None]],
) -> Callable[Concatenate["Client", P], Generator[T, None, None]]:
    """The same of one that gives several answers."""

    @wraps(method)
    def blocking(self: "Client", /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        given = method(self, *args, **kwargs)
        try:
            while True:
                yield _finished(anext(given))
        except StopAsyncIteration:
            return
        finally:
            _finished(given.aclose())

    signature, described = inspect.signature(method), cast(Any, blocking)
    one, _ = get_args(signature.return_annotation)
    described.__signature__ = signature.replace(return_annotation=cast(Any, Generator)[one, None, None])
    return blocking


def _finished(steps: Coroutine[Any, Any, T]) -> T:
    try:
        steps.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    raise RuntimeError("a client that blocks has waited for a loop")


class _Either(ABC):
    """What both clients are made with, and how they send a call."""

    Error = outcomes.ClientError
    Refused = outcomes.ServiceRefused
    Unreachable = outcomes.ServiceUnreachable
    AnswerLost = outcomes.AnswerLost
    UnexpectedAnswer = outcomes.UnexpectedAnswer

    def __init__(
        self,
        base_url: str,
        token: str | None = None,
        *,
        retries: int = 3,
        patience: float = 90.0,
        timeout: float = 120.0,
        most_bytes: int = MOST_BYTES,
        plain_http: bool = False,
        public_only: bool = False,
        on_wait: OnWait | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        try:
            url = httpx.URL(base_url)
        except httpx.InvalidURL as error:
            raise self.Unreachable(f"{base_url} is no address: {error}") from error
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = http_client(
            seconds=timeout,
            most_bytes=most_bytes,
            plain_http=plain_http,
            public_only=public_only,
            base_url=url,
            headers=headers,
            transport=transport,
        )
        self._patience, self._seconds = (retries, patience, on_wait), timeout
        if isinstance(self, Client):  # whose sockets a loop holds that does not end with it
            weakref.finalize(self, _leave, self._http)

    async def _answer(self, call: Call[AnyAnswer]) -> AnyAnswer:
        return parsed(call, await self._send(call))

    async def _send(self, call: Call[AnyAnswer], deadline: Deadline | None = None) -> httpx.Response:
        """The good answer; with a deadline its body is still to be read."""
        tries = attempts(call, self._http.base_url, *self._patience)
        next(tries)
        stream, deadline = deadline is not None, deadline or Deadline(self._seconds)
        try:
            while True:
                if pause := tries.send(await self._attempt(call, deadline, stream=stream)):
                    await self._sleep(pause)
                    deadline.put_off(pause)
        except StopIteration as answered:
            response: httpx.Response = answered.value
            return response

    async def _attempt(self, call: Call[AnyAnswer], deadline: Deadline, *, stream: bool) -> Attempt:
        try:
            request = self._http.build_request(
                call.method,
                call.path,
                json=call.body,
                files=call.files,
                headers=call.headers,
                extensions={DEADLINE: deadline},
            )
            response = await self._sent(request, stream=stream)
            if not response.is_success:
                await response.aread()
        except httpx.HTTPError as error:
            return error
        return response

    @abstractmethod
    async def _sent(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        """The answer, whose stream is asynchronous."""

    @abstractmethod
    async def _sleep(self, seconds: float) -> None: ...


class AsyncClient(_Either):
    """`Client` for asyncio: the same arguments, calls and errors.

    Many requests may run at the same time over one client.
    """

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    complete = _answered(calls.complete)
    chat = _answered(calls.chat)
    models = _answered(calls.models)
    keys = _answered(calls.keys)
    check_content = _answered(calls.check_content)
    detect_public = _answered(calls.detect_public)
    text_provenance = _answered(calls.text_provenance)
    submit_job = _answered(calls.submit_job)
    job = _answered(calls.job)
    job_results = _answered(calls.job_results)

    @overload
    async def detect(self, request: CombinedRequest | str) -> CombinedResponse: ...
    @overload
    async def detect(self, request: DetectionRequest) -> DetectionResponse: ...
    async def detect(self, request: DetectionRequest | str) -> DetectionResponse:
        """`POST /v1/detect`, or its `/direct`, `/aligned`, `/localized` by the type; the first for a text."""
        call: Call[Any] = calls.detect(request)
        response: DetectionResponse = await self._answer(call)
        return response

    async def stream_chat(self, request: ChatRequest | Fields) -> AsyncGenerator[ChatChunk, None]:
        """`POST /v1/chat/completions`, event by event; leaving the loop early ends the generation."""
        call, deadline = calls.chat_events(request), Deadline(self._seconds)
        response = await self._send(call, deadline)
        try:
            async for line in response.aiter_lines():
                if (event := parsed_event(call, response, line)) is not None:
                    yield event
                    deadline.begin_anew()
        except httpx.HTTPError as error:
            raise unanswered(call, self._http.base_url, error).error from error
        finally:
            await response.aclose()

    async def iter_job_results(self, job_id: str, *, offset: int = 0) -> AsyncGenerator[JobResult, None]:
        """All of `job_results` from document `offset` on, asked for page by page as they are read."""
        following: int | None = offset
        while following is not None:
            page = await self._answer(calls.job_results(job_id, offset=following))
            for result in page.results:
                yield result
            following = page.next_offset if page.results else None

    async def wait_for_job(
        self, job_id: str, progress: Callable[[JobStatus], None] | None = None, *, poll_seconds: float = 1.0
    ) -> JobStatus:
        """Asks for the job until it is finished; tells `progress` each time what it was answered."""
        while True:
            status = await self._answer(calls.job(job_id))
            if progress is not None:
                progress(status)
            if status.status == "finished":
                return status
            await self._sleep(poll_seconds)

    async def delete_job(self, job_id: str) -> None:
        """`DELETE /v1/detect/jobs/{id}`: ends a job and forgets all of it."""
        await self._send(calls.delete_job(job_id))

    async def _sent(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        return await self._http.send(request, stream=stream)

    async def _sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Stream(httpx.AsyncByteStream):
    """A stream that blocks, in the form of one that does not."""

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        pieces = aiter(self._stream)

        async def following() -> bytes | None:
            return await anext(pieces, None)

        while (piece := blocking(following())) is not None:
            yield piece

    async def aclose(self) -> None:
        blocking(self._stream.aclose())


class Client(_Either):
    """Calls one service; waits as long as Retry-After says, and tries again what did not arrive.

    A POST that may have arrived is sent again only where the service does it once all the same: a job.
    Any other one raises `Client.AnswerLost`.

    A request is an object of the schema, which is checked here, or its fields as a mapping, which the service
    checks. Every call raises `Client.Error` alone: the service refused, did not answer, or answered something
    else.

    Args:
        base_url: of the service, without `/v1`.
        token: access token; None where the public is answered without one.
        retries: how many more times a request is sent that did not arrive or found no service.
        patience: most seconds that a call waits, in all, for a service that names a time; 0: it does not.
        timeout: most seconds of a call from its first byte to the last of its answer, over all tries without
            the waits between them; of a streamed chat to each event.
        most_bytes: of an answer.
        plain_http: send the token over plain http to any host, not only to those inside one's own network
            (`ttmark.shared.outgoing.is_inside`).
        public_only: send to public addresses over https alone, as a stranger may have named the service.
        on_wait: is told the seconds before each wait, and the error that is the reason.
        transport: replaces the network, for tests.
    """

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        blocking(self._http.aclose())

    complete = _now(AsyncClient.complete)
    chat = _now(AsyncClient.chat)
    stream_chat = _each(AsyncClient.stream_chat)
    models = _now(AsyncClient.models)
    keys = _now(AsyncClient.keys)
    detect = _now(AsyncClient.detect)
    check_content = _now(AsyncClient.check_content)
    detect_public = _now(AsyncClient.detect_public)
    text_provenance = _now(AsyncClient.text_provenance)
    submit_job = _now(AsyncClient.submit_job)
    job = _now(AsyncClient.job)
    wait_for_job = _now(AsyncClient.wait_for_job)
    job_results = _now(AsyncClient.job_results)
    iter_job_results = _each(AsyncClient.iter_job_results)
    delete_job = _now(AsyncClient.delete_job)

    async def _sent(self, request: httpx.Request, *, stream: bool) -> httpx.Response:
        response = blocking(self._http.send(request, stream=stream))
        response.stream = _Stream(cast(httpx.AsyncByteStream, response.stream))
        return response

    async def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251


def _leave(http: httpx.AsyncClient) -> None:
    """Closes what a client that nobody closed has left open."""
    asyncio.run_coroutine_threadsafe(http.aclose(), loop_of_calls())
