"""The one way from a request to its answer: plan, generate, merge, account, format, send."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol, TypeVar, cast

import structlog
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ttmark.gen_service.api.account import Accounting, Answer, Step
from ttmark.gen_service.api.long_bodies import written
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.request_plan import Plan
from ttmark.gen_service.api.plan.watermark_report import PENDING, answer_headers
from ttmark.gen_service.api.server_metrics import Operation
from ttmark.gen_service.decoding.request import Delta
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.request_body import unless_disconnected
from ttmark.shared.http.service_errors import InternalError, PolicyDenied, ServiceError
from ttmark.shared.schemas.generation.completions import CompletionRequest
from ttmark.shared.schemas.generation.sampling import SamplingFields

_EVENTS_AHEAD = 4
KEEP_ALIVE = b": keep-alive\n\n"

Body = TypeVar("Body", bound=SamplingFields)
MakePlan = Callable[[Body, Principal, GenerationBackend], Awaitable[Plan]]


class Format(Protocol):
    """Writes one answer: `whole`, or as the bytes of events, one by one."""

    def whole(self, answer: Answer, /) -> BaseModel: ...

    def opening(self) -> Iterator[bytes]: ...

    def delta(self, delta: Delta, answer: Answer | None, /) -> Iterator[bytes]: ...

    def closing(self, answer: Answer, /) -> Iterator[bytes]: ...

    def failed(self, error: ServiceError, /) -> Iterator[bytes]: ...


MakeFormat = Callable[[Plan, Body], Format]
Steps = AsyncGenerator[Step | None, None]


async def answer_with_text(
    books: Accounting,
    body: Body,
    caller: Principal,
    request: Request,
    make_plan: MakePlan[Body],
    make_format: MakeFormat[Body],
) -> Response:
    """The answer of any API, whole or as a stream; its completions are cancelled when the client goes.

    Raises:
        ServiceError: the request cannot be served, the caller's allowance does not suffice, or the engine
            refused or failed a completion before anything was sent.
        ClientDisconnect: the client has gone.
    """
    # What would find the queue full is refused before anything is spent on it.
    books.metrics.check_queue(books.backend.model(body.model).generator, caller.tenant)
    try:
        plan = await make_plan(body, caller, books.backend)
    except PolicyDenied as denial:
        books.metrics.policy(denial.rule, "denied")
        books.record("policy.deny", caller, request, reason=denial.reason, rule=denial.rule)
        raise
    form = make_format(plan, body)
    account = await books.open(plan, caller, request)
    request.scope["state"]["model"] = plan.model_id
    operation: Operation = "text_completion" if isinstance(body, CompletionRequest) else "chat"
    completions = [books.metrics.observe(plan.model.generator, each, operation) for each in plan.requests]
    deltas = merge(completions, idle_seconds=books.backend.limits.keep_alive_seconds)
    steps = account.follow(deltas)
    if body.stream:
        # A refusal by the engine comes at once, while the answer can still be an HTTP error.
        first = await unless_disconnected(request.receive, _next(steps))
        headers = answer_headers(PENDING if plan.marking.marking else "unwatermarked")
        return EventStream(_events(plan, form, first, steps), source=steps, headers=headers)
    answer = await unless_disconnected(request.receive, _last(steps))
    headers = answer_headers(answer.watermark.status, answer.watermark.detectability)
    if plan.requests[0].sampling.logprobs is not None:
        return await written(lambda: form.whole(answer), headers)
    return Response(form.whole(answer).model_dump_json(), headers=headers, media_type="application/json")


async def _next(steps: Steps) -> Step | None:
    return await anext(steps)


async def _last(steps: Steps) -> Answer:
    answer = None
    async with aclosing(steps):
        async for step in steps:
            answer = step[1] if step else answer
    return _known(answer)


async def _events(plan: Plan, form: Format, first: Step | None, steps: Steps) -> AsyncGenerator[bytes]:
    """The stream; what goes wrong after its beginning is an event of its own."""
    answer = None
    try:
        for data in form.opening():
            yield data
        async with aclosing(_resume(first, steps)) as resumed:
            async for step in resumed:
                if step is None:
                    yield KEEP_ALIVE
                    continue
                delta, answer = step
                for data in form.delta(delta, answer):
                    yield data
        for data in form.closing(_known(answer)):
            yield data
    except ServiceError as error:
        for data in form.failed(error):
            yield data
    except Exception:
        structlog.get_logger("ttmark.generation").exception("stream_failed", response_id=plan.response_id)
        for data in form.failed(InternalError("Something went wrong on our side.")):
            yield data


async def _resume(first: Step | None, steps: Steps) -> Steps:
    yield first
    async for step in steps:
        yield step


def _known(answer: Answer | None) -> Answer:
    if answer is None:
        raise InternalError("The state of the watermark is unknown.")
    return answer


class EventStream(StreamingResponse):
    """Sends the events of `content` until they end or the client goes; `source` is closed in any case.

    Args:
        source: what `content` reads from and may not have begun to read when the client goes.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        content: AsyncGenerator[bytes, None],
        source: AsyncGenerator[Any, None],
        headers: Mapping[str, str],
    ) -> None:
        # Proxies that buffer would turn the stream into one late answer.
        unbuffered = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(content, headers={**unbuffered, **headers})
        self._content = content
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._content.aclose()
            await self._source.aclose()


class _End:
    """A completion is over."""


Event = Delta | _End | Exception | None


async def merge(
    streams: Sequence[AsyncIterator[Delta]], *, idle_seconds: float
) -> AsyncGenerator[Delta | None, None]:
    """Deltas of all streams as they come, each with its stream's number, and None after each period of
    `idle_seconds` without any.

    The first error of a stream ends all of them and is raised here; so does closing this generator.
    """
    queue: asyncio.Queue[Event] = asyncio.Queue(_EVENTS_AHEAD * len(streams))
    tasks = [asyncio.create_task(_pump(index, stream, queue)) for index, stream in enumerate(streams)]
    loop, running, idle = asyncio.get_running_loop(), len(tasks), True
    timer: asyncio.TimerHandle

    def tick() -> None:
        """Says that a period was idle; one timer per period, not one per event."""
        nonlocal idle, timer
        if idle and queue.empty():
            queue.put_nowait(None)
        idle, timer = True, loop.call_later(idle_seconds, tick)

    timer = loop.call_later(idle_seconds, tick)
    try:
        while running:
            event = await queue.get()
            idle = False
            if isinstance(event, Exception):
                raise event
            if isinstance(event, _End):
                running -= 1
            else:
                yield event
    finally:
        timer.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(index: int, stream: AsyncIterator[Delta], queue: asyncio.Queue[Event]) -> None:
    try:
        # The engine's streams are async generators: closing one frees its place in the batch at once.
        async with aclosing(cast(AsyncGenerator[Delta, None], stream)):
            async for delta in stream:
                await queue.put(replace(delta, index=index) if index else delta)
    except Exception as error:
        await queue.put(error)
    else:
        await queue.put(_End())
