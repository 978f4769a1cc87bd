"""Takes in the work of a request: refuses what is too much, does what is short, queues what is long."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from fastapi import Request
from starlette.requests import ClientDisconnect

from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.cost import check_cost, estimated_tokens, request_cost
from ttmark.detect_service.fair_work.fair_queue import FairQueue, QueueFull
from ttmark.detect_service.fair_work.work_limits import WorkLimits
from ttmark.detect_service.fair_work.work_metrics import WorkMetrics
from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.service_errors import TooManyRequests, TooMuchWork
from ttmark.shared.keys.unlocked import HeldKey
from ttmark.shared.limits.rate_limit import Grant
from ttmark.shared.limits.work_budget import WorkBudget
from ttmark.shared.schemas.detection import DetectionRequest

T = TypeVar("T")
# About a millisecond: handing less to another thread and back costs more than it saves.
_INLINE_BLOCKS = 5_000
# Parsing a body of numbers, and whatever else looks at the whole of it once.
_BLOCKS_IN_A_BYTE = 0.3
_QUEUE_RETRY_SECONDS = 2.0


class WorkDesk:
    """Between the routes and the workers.

    Args:
        budget: of each tenant; None: any.
    """

    def __init__(
        self,
        backend: DetectionBackend,
        limits: WorkLimits,
        metrics: WorkMetrics,
        budget: WorkBudget | None = None,
    ) -> None:
        self._backend = backend
        self._limits = limits
        self._metrics = metrics
        self._budget = budget
        self.queue = FairQueue(workers=limits.threads, most_jobs=limits.queued_requests, observer=metrics)
        metrics.watch(lambda: self.queue.depth)

    async def done(
        self, mode: str, body: DetectionRequest, caller: Principal, request: Request, work: Callable[[], T]
    ) -> T:
        """The result of `work`, which examines the documents of `body`.

        Raises:
            TooMuchWork: it would be more than one request may ask for.
            TooManyRequests: the tenant's budget is used up, or too much of its work waits.
            ClientDisconnect: the client has left, and the work was given up.
        """
        try:
            return await self._admitted(mode, body, caller, request, work)
        except TooMuchWork:  # by the estimate, or once the texts were read
            self._metrics.refused("cost")
            raise

    async def _admitted(
        self, mode: str, body: DetectionRequest, caller: Principal, request: Request, work: Callable[[], T]
    ) -> T:
        blocks = self._estimate(body, caller.tenant)
        check_cost(blocks, self._backend.max_request_blocks)
        if self._budget is not None:
            taken = await self._budget.take(caller.line, blocks)
            if not isinstance(taken, Grant):
                self._metrics.refused("budget")
                raise TooManyRequests(
                    f"This request is estimated at {blocks} hashed blocks of work, and the tenant's limit of "
                    f"{self._budget.per_minute} a minute is used up.",
                    retry_after=taken,
                )
        self._metrics.admitted(mode, blocks)
        return work() if blocks <= _INLINE_BLOCKS else await self.queued(caller, blocks, request, work)

    async def run_long(self, request: Request, size: int, work: Callable[[], T]) -> T:
        """The result of `work`, which takes time in proportion to a long body of `size` bytes.

        Raises:
            TooManyRequests: too much of the tenant's work waits.
            ClientDisconnect: the client has left, and the work was given up.
        """
        caller: Principal = request.scope["state"]["principal"]
        return await self.queued(caller, round(size * _BLOCKS_IN_A_BYTE), request, work)

    async def queued(self, caller: Principal, blocks: int, request: Request, work: Callable[[], T]) -> T:
        """The result of `work`, done by the workers when it is the tenant's turn.

        Raises:
            TooManyRequests: too much of the tenant's work waits.
            ClientDisconnect: the client has left, and the work was given up.
        """
        doing = asyncio.ensure_future(self.queue.run(caller.line, blocks, work))
        leaving = asyncio.ensure_future(_has_left(request))
        try:
            await asyncio.wait((doing, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not doing.done():
                raise ClientDisconnect
            return doing.result()
        except QueueFull:
            self._metrics.refused("queue")
            raise TooManyRequests(
                f"{self._limits.queued_requests} requests of this tenant are being worked on; send the next "
                "one when one of them is answered.",
                retry_after=_QUEUE_RETRY_SECONDS,
            ) from None
        finally:
            doing.cancel()
            leaving.cancel()

    def _estimate(self, body: DetectionRequest, tenant: str) -> int:
        # Keys that are refused later are left out: the answer says what is wrong with them.
        wanted = None if body.keys is None else frozenset(body.keys)
        mine = self._backend.keys.for_tenant(tenant)
        keys = [key for key in mine if wanted is None or key.key_id in wanted]
        most = self._backend.max_document_tokens
        lengths = [estimated_tokens(document, most) for document in body.inputs]

        def of_each(_: HeldKey) -> list[int]:
            return lengths

        return request_cost(body, body.inputs, keys, of_each)


async def _has_left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
