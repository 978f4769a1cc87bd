"""What goes on beside the routes of jobs: parts are worked on, webhooks called, old jobs forgotten.

Several tenants are served at once, so that none of them waits for another.
"""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import structlog

from ttmark.detect_service.features.jobs.job_service import JobMetrics
from ttmark.detect_service.features.jobs.job_store import Claim, DueCall
from ttmark.detect_service.features.jobs.part_work import PartWork
from ttmark.detect_service.features.jobs.sealed_jobs import Jobs, open_head, status_of
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError, StoreUnavailable

TENANTS_AT_ONCE = 8
_IDLE_SECONDS = 1.0
_EXPIRE_SECONDS = 30.0
_FAILED_SECONDS = 5.0


T = TypeVar("T", bound=Claim | DueCall)


@dataclass(eq=False, slots=True)
class TenantTurns(Generic[T]):
    """Takes things from a store and does them beside each other.

    Attributes:
        name: of what is done, in the log.
        take: the next thing of any tenant but these; None: there is none now.
        do: does one thing, and gives it back when it is cancelled.
        of_each: things of one tenant at the same time.
    """

    name: str
    take: Callable[[Collection[str]], Awaitable[T | None]]
    do: Callable[[T], Awaitable[None]]
    of_each: int = 1
    _tenants: dict[asyncio.Task[None], str] = field(default_factory=dict)

    async def run(self) -> None:
        """Goes on until it is cancelled, and then ends what is being done."""
        try:
            while True:
                await self._round()
        finally:
            for task in self._tenants:
                task.cancel()
            await asyncio.gather(*self._tenants, return_exceptions=True)

    async def _round(self) -> None:
        if len(self._tenants) >= self.of_each * TENANTS_AT_ONCE:
            await self._rest()
            return
        counts = Counter(self._tenants.values())
        try:
            taken = await self.take([tenant for tenant in counts if counts[tenant] >= self.of_each])
        except Exception as error:
            await self._failed(error)
            return
        if taken is None:
            await self._rest()
            return
        task = asyncio.create_task(self._done(taken))
        self._tenants[task] = taken.job.tenant
        task.add_done_callback(self._tenants.pop)

    async def _done(self, taken: T) -> None:
        try:
            await self.do(taken)
        except Exception as error:
            await self._failed(error)  # its tenant waits meanwhile, and no other

    async def _failed(self, error: Exception) -> None:
        # The name alone: a message may hold what a document says.
        structlog.get_logger("ttmark.jobs").warning(f"{self.name}_failed", error=type(error).__name__)
        await asyncio.sleep(_FAILED_SECONDS)

    async def _rest(self) -> None:
        """Until something is done, but not for long: another replica may have made a job."""
        if self._tenants:
            await asyncio.wait(self._tenants, timeout=_IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(_IDLE_SECONDS)


@dataclass(eq=False, slots=True)
class JobWorker:
    """The worker of a process. `ready`: whether keys are in hand; nothing is claimed without."""

    jobs: Jobs
    work: PartWork
    metrics: JobMetrics
    ready: Callable[[], bool]
    _name: str = field(default_factory=lambda: uuid.uuid4().hex)

    async def run(self) -> None:
        """Works until it is cancelled; parts that it had are then free at once, and as new."""
        await TenantTurns("job_work", self.claimed, self.hold, of_each=self.jobs.limits.workers).run()

    async def claimed(self, besides: Collection[str] = ()) -> Claim | None:
        if not self.ready():
            return None
        claiming = asyncio.ensure_future(self.jobs.store.claim(self._name, besides))
        try:
            claim = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with suppress(KeyStoreError):
                late = await claiming
                if late is not None:
                    await self.jobs.store.release(late)
            raise
        if claim is not None and claim.attempt > 1:
            self.metrics.repeated_parts.inc()
        return claim

    async def hold(self, claim: Claim) -> None:
        """Works on a part as long as it is this worker's. Raises KeyStoreError: another one gets it later."""
        working = asyncio.create_task(self.work.do(claim))
        try:
            while True:
                await asyncio.wait({working}, timeout=self.jobs.store.lease_seconds / 3)
                if working.done():
                    working.result()
                    return
                if not await self.jobs.store.renew(claim):
                    return  # deleted, or another worker has it
        except (asyncio.CancelledError, StoreUnavailable):
            # No fault of the documents: this does not count among the attempts.
            with suppress(KeyStoreError):
                await self.jobs.store.release(claim)
            raise
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


# Attempts come after 10, 20, 40, ... seconds; the last one 21 minutes after the one before.
MOST_CALLS = 9
_PAUSE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class JobCalls:
    """Calls webhooks, one of each tenant at a time. Every replica does it; each call is one replica's."""

    jobs: Jobs
    metrics: JobMetrics
    now: Callable[[], float] = time.time

    async def run(self) -> None:
        await TenantTurns("job_call", self.due, self.call).run()

    async def due(self, besides: Collection[str] = ()) -> DueCall | None:
        """A finished job to tell of, of any tenant but these."""
        return await self.jobs.store.next_call(self.now(), pause_seconds=_PAUSE_SECONDS, besides=besides)

    async def call(self, due: DueCall) -> None:
        """Tells of it. Raises KeyStoreError: the store is away, or the job does not open."""
        job_id = due.job.job_id
        head, _ = await open_head(self.jobs.kek, job_id, due.job.head)
        address, webhooks = head.options.webhook, self.jobs.webhooks
        body = b'{"type":"job.finished","data":%b}' % status_of(due.job, head).model_dump_json().encode()
        taken = webhooks is not None and address is not None and await webhooks.call(address, job_id, body)
        outcome = "taken" if taken else "given_up" if due.attempt >= MOST_CALLS else "failed"
        self.metrics.calls.labels(outcome).inc()
        if outcome != "failed":
            await self.jobs.store.called(job_id)


@dataclass(frozen=True, slots=True)
class JobExpiry:
    """Every replica does it; each end is one replica's."""

    jobs: Jobs
    metrics: JobMetrics

    async def run(self) -> None:
        while True:
            try:
                await self.expire()
            except Exception as error:
                structlog.get_logger("ttmark.jobs").warning("job_expiry_failed", error=type(error).__name__)
            await asyncio.sleep(_EXPIRE_SECONDS)

    async def expire(self) -> None:
        """Forgets jobs and keys whose time has come, and counts what waits. Raises StoreUnavailable."""
        self.metrics.jobs.labels("expired").inc(await self.jobs.store.expire(time.time()))
        await self.jobs.store.keys.expire(time.time())
        self.metrics.waiting.set(await self.jobs.store.waiting())
