"""The one way from a request to its answer: plan, generate, observe, account, format, send."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

import structlog
from starlette.requests import Request
from starlette.responses import Response

from ttmark.gen_service.api.account import Accounting, Answer, Step
from ttmark.gen_service.api.answer_headers import stream_headers, whole_headers
from ttmark.gen_service.api.backend import GenerationBackend
from ttmark.gen_service.api.event_stream import KEEP_ALIVE, EventStream
from ttmark.gen_service.api.format import Format
from ttmark.gen_service.api.merge import merge
from ttmark.gen_service.api.observer import Observer
from ttmark.gen_service.api.plan import Plan
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.disconnect import unless_disconnected
from ttmark.shared.http.service_errors import InternalError, PolicyDenied, ServiceError
from ttmark.shared.schemas.sampling import SamplingFields

Body = TypeVar("Body", bound=SamplingFields)
MakePlan = Callable[[Body, Principal, GenerationBackend], Awaitable[Plan]]
MakeFormat = Callable[[Plan, Body], Format]
Steps = AsyncGenerator[Step | None, None]


class Pipeline:
    """Answers the requests of every API over one backend."""

    def __init__(self, backend: GenerationBackend, observer: Observer, accounting: Accounting) -> None:
        self._backend = backend
        self._observer = observer
        self._accounting = accounting

    async def answer(
        self,
        body: Body,
        caller: Principal,
        request: Request,
        make_plan: MakePlan[Body],
        make_format: MakeFormat[Body],
    ) -> Response:
        """The answer, whole or as a stream; its completions are cancelled when the client goes.

        Raises:
            ServiceError: the request cannot be served, the caller's allowance does not suffice, or the engine
                refused or failed a completion before anything was sent.
            ClientDisconnect: the client has gone.
        """
        # What would find the queue full is refused before anything is spent on it.
        self._observer.check_queue(self._backend.model(body.model).generator, caller.tenant)
        try:
            plan = await make_plan(body, caller, self._backend)
        except PolicyDenied as denial:
            self._accounting.denied(denial, caller, request)
            raise
        form = make_format(plan, body)
        account = await self._accounting.open(plan, caller, request)
        completions = [self._observer.observe(plan.model.generator, each) for each in plan.requests]
        deltas = merge(completions, idle_seconds=self._backend.limits.keep_alive_seconds)
        steps = account.follow(deltas)
        if plan.stream:
            # A refusal by the engine comes at once, while the answer can still be an HTTP error.
            first = await unless_disconnected(request.receive, _next(steps))
            headers = stream_headers(plan.marking)
            return EventStream(_events(plan, form, first, steps), source=steps, headers=headers)
        answer = await unless_disconnected(request.receive, _last(steps))
        return Response(
            form.whole(answer).model_dump_json(),
            headers=whole_headers(answer.watermark),
            media_type="application/json",
        )


async def _next(steps: Steps) -> Step | None:
    return await anext(steps)


async def _last(steps: Steps) -> Answer:
    """The answer, once every completion has ended."""
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
