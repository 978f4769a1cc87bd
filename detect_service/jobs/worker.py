"""Claims parts of jobs and holds them while they are worked on."""

import asyncio
import uuid
from collections.abc import Callable, Collection
from contextlib import suppress

from ttmark.detect_service.jobs.job_metrics import JobMetrics
from ttmark.detect_service.jobs.job_store import Claim
from ttmark.detect_service.jobs.jobs import Jobs
from ttmark.detect_service.jobs.part_work import PartWork
from ttmark.detect_service.jobs.turns import Turns
from ttmark.shared.vault.key_store_errors import KeyStoreError, StoreUnavailable


class JobWorker:
    """The worker of a process.

    Args:
        ready: whether keys are in hand; nothing is claimed without.
    """

    def __init__(self, jobs: Jobs, work: PartWork, metrics: JobMetrics, *, ready: Callable[[], bool]) -> None:
        self._jobs = jobs
        self._work = work
        self._metrics = metrics
        self._ready = ready
        self._name = uuid.uuid4().hex

    async def run(self) -> None:
        """Works until it is cancelled; parts that it had are then free at once, and as new."""
        await Turns("job_work", self._claimed, self._hold, of_each=self._jobs.limits.workers).run()

    async def work_once(self) -> bool:
        """Works on one part, if there is one.

        Raises:
            KeyStoreError: a store is away, or the part does not open; another worker gets it later.
        """
        claim = await self._claimed()
        if claim is None:
            return False
        await self._hold(claim)
        return True

    async def _claimed(self, besides: Collection[str] = ()) -> Claim | None:
        if not self._ready():
            return None
        claiming = asyncio.ensure_future(self._jobs.store.claim(self._name, besides))
        try:
            claim = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with suppress(KeyStoreError):
                late = await claiming
                if late is not None:
                    await self._jobs.store.release(late)
            raise
        if claim is not None and claim.attempt > 1:
            self._metrics.repeated_parts.inc()
        return claim

    async def _hold(self, claim: Claim) -> None:
        working = asyncio.create_task(self._work.do(claim))
        try:
            while True:
                await asyncio.wait({working}, timeout=self._jobs.store.lease_seconds / 3)
                if working.done():
                    working.result()
                    return
                if not await self._jobs.store.renew(claim):
                    return  # deleted, or another worker has it
        except (asyncio.CancelledError, StoreUnavailable):
            # No fault of the documents: this does not count among the attempts.
            with suppress(KeyStoreError):
                await self._jobs.store.release(claim)
            raise
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
