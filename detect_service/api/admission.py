"""Takes in the work of a request: refuses what is too much, does what is short, queues what is long."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import Request

from ttmark.detect_service.api.body_route import body_size
from ttmark.detect_service.api.metrics import WorkMetrics
from ttmark.detect_service.cost import check_cost, reading_cost
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.documents.document_limits import (
    RefusedDocument,
    check_text,
    shorten,
    size_of,
    sized,
)
from ttmark.detect_service.fair_work.fair_queue import FairQueue, QueueFull, WorkLimits
from ttmark.detect_service.key_selection import select_keys
from ttmark.detect_service.question import Gate
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.request_body import LONG_BODY_BYTES, unless_disconnected
from ttmark.shared.http.service_errors import TooLarge, TooManyRequests, TooMuchWork
from ttmark.shared.limits.rate_limits import DocumentAllowance, Grant, WorkBudget
from ttmark.shared.schemas.detection.detect import DetectionRequest

T = TypeVar("T")
# About a millisecond: handing less to another thread and back costs more than it saves.
_INLINE_BLOCKS = 5_000
# Bytes of a body whose texts or numbers are read in as little time.
_SHORT_BODY = 10_000
# Parsing a body of numbers, and whatever else looks at the whole of it once.
_BLOCKS_IN_A_BYTE = 0.3
# Of it the parsing alone, which is done whatever the request says.
_BLOCKS_IN_A_PARSED_BYTE = 0.05
_QUEUE_RETRY_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What questions cost.

    Attributes:
        allowance: of each token, asked for the documents of a request; None: any.
        budget: of each tenant, asked for their work; None: any.
        work: how much is worked on, and waits.
    """

    allowance: DocumentAllowance | None = None
    budget: WorkBudget | None = None
    work: WorkLimits = field(default_factory=WorkLimits)


class Admission:
    """Between the routes and the workers."""

    def __init__(self, backend: DetectionBackend, terms: Terms, metrics: WorkMetrics) -> None:
        self.backend = backend
        self.allowance = terms.allowance
        self.budget = terms.budget
        self.metrics = metrics
        self._limits = limits = terms.work
        self.queue = FairQueue(
            workers=limits.threads,
            most_jobs=limits.queued_requests,
            started=metrics.waits.observe,
            abandoned=metrics.abandoned.inc,
        )
        metrics.depth.set_function(lambda: self.queue.depth)

    def shorten(self, body: Any) -> None:
        """Takes away from parsed JSON what is over the limit of a document in any case."""
        shorten(body, self.backend.max_document_tokens)

    async def run_long(self, request: Request, size: int, work: Callable[[], T]) -> T:
        """The result of `work`, which takes time in proportion to a long body. Raises as `queued`."""
        caller: Principal = request.scope["state"]["principal"]
        return await self.queued(caller, round(size * _BLOCKS_IN_A_BYTE), request, work)

    async def queued(self, caller: Principal, blocks: int, request: Request, work: Callable[[], T]) -> T:
        """The result of `work` in turn. Raises TooManyRequests: too much waits; ClientDisconnect."""
        try:
            return await unless_disconnected(request.receive, self.queue.run(caller.line, blocks, work))
        except QueueFull:
            self.metrics.refusals.labels("queue").inc()
            raise TooManyRequests(
                f"{self._limits.queued_requests} requests of this tenant are being worked on; send the next "
                "one when one of them is answered.",
                retry_after=_QUEUE_RETRY_SECONDS,
            ) from None

    async def grant(self, caller: Principal, blocks: int) -> Grant:
        """Takes work, in hashed blocks, from the tenant's budget. Raises TooManyRequests: it is used up."""
        if self.budget is None:
            return Grant("", blocks)
        taken = await self.budget.take(caller.line, blocks)
        if not isinstance(taken, Grant):
            self.metrics.refusals.labels("budget").inc()
            raise TooManyRequests(
                f"This request is estimated at {blocks} hashed blocks of work, and the tenant's limit of "
                f"{self.budget.per_minute} a minute is used up.",
                retry_after=taken,
            )
        return taken


class HttpGate(Gate):
    """Lets in the question of a request, at its price.

    Raises:
        ServiceError: as `select_keys`, from `readable`.
        TooLarge: the only document is over a limit.
        TooMuchWork: it is more than one request may ask for, by its estimate or once the texts were read.
        TooManyRequests: the tenant's budget is used up, or too much of its work waits.
        ClientDisconnect: the client has left, and the work was given up.
    """

    checks_cost = True
    leaves_evenly = True

    def __init__(self, admission: Admission, caller: Principal, request: Request) -> None:
        self.owner = caller.tenant
        self._admission = admission
        self._caller = caller
        self._request = request
        self._blocks = 0

    async def sized(self, request: DetectionRequest) -> DetectionRequest:
        size = body_size(self._request)
        if size > LONG_BODY_BYTES:
            await self._admission.grant(self._caller, round(size * _BLOCKS_IN_A_PARSED_BYTE))
        inputs = sized(request.inputs, self._admission.backend, alone=True)
        return request if inputs == request.inputs else request.model_copy(update={"inputs": inputs})

    async def readable(self, request: DetectionRequest) -> DetectionRequest:
        """The request without the documents that have too many tokens; texts that cannot have are not read.

        What is read is charged to the tenant's budget.
        """
        admission, backend = self._admission, self._admission.backend
        most, inputs = backend.max_document_tokens, list(request.inputs)
        unread = [
            index
            for index, document in enumerate(inputs)
            if document.text is not None and size_of(document, most, backend) > most
        ]
        if not unread:
            return request
        keys = select_keys(request, self._caller.tenant, backend.keys, backend.tokenizers).keys
        fingerprints = {key.profile.tokenizer_fingerprint for key in keys}
        tokenizers = [one for one in map(backend.tokenizers.get, fingerprints) if one is not None]
        grant = await admission.grant(self._caller, reading_cost(most * len(unread) * len(tokenizers)))
        read = 0

        def read_all() -> None:
            nonlocal read
            for index in unread:
                try:
                    read += check_text(index, inputs[index].text or "", tokenizers, most)
                except TooLarge as error:
                    read += most
                    if len(inputs) == 1:
                        raise
                    inputs[index] = RefusedDocument.of(inputs[index], error)

        try:
            await admission.queued(self._caller, grant.units, self._request, read_all)
        finally:
            if admission.budget is not None:
                await admission.budget.settle(grant, used=reading_cost(read))
        return request.model_copy(update={"inputs": inputs})

    async def take(self, request: DetectionRequest) -> None:
        if self._admission.allowance is not None:
            await self._admission.allowance.take(self._caller, len(request.inputs))

    async def admit(self, mode: str, blocks: int) -> None:
        with self._counting_refusals():
            check_cost(blocks, self._admission.backend.max_request_blocks)
        await self._admission.grant(self._caller, blocks)
        self._admission.metrics.blocks.labels(mode).inc(blocks)
        self._blocks = blocks

    async def read(self, work: Callable[[], Any]) -> Any:
        size = body_size(self._request)
        return work() if size <= _SHORT_BODY else await self._admission.run_long(self._request, size, work)

    async def run(self, work: Callable[[], Any]) -> Any:
        with self._counting_refusals():
            if self._blocks <= _INLINE_BLOCKS:
                return work()
            return await self._admission.queued(self._caller, self._blocks, self._request, work)

    @contextmanager
    def _counting_refusals(self) -> Iterator[None]:
        try:
            yield
        except TooMuchWork:
            self._admission.metrics.refusals.labels("cost").inc()
            raise
