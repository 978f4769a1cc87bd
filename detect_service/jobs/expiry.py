"""The end of jobs, and somebody who watches how many documents wait."""

import asyncio
import time
from collections.abc import Callable

import structlog

from ttmark.detect_service.jobs.job_metrics import JobMetrics
from ttmark.detect_service.jobs.jobs import Jobs

_EXPIRE_SECONDS = 30.0


class JobExpiry:
    """Every replica does it; each end is one replica's."""

    def __init__(self, jobs: Jobs, metrics: JobMetrics, *, now: Callable[[], float] = time.time) -> None:
        self._jobs = jobs
        self._metrics = metrics
        self._now = now
        self._log = structlog.get_logger("ttmark.jobs")

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        while True:
            try:
                await self.expire()
            except Exception as error:
                self._log.warning("job_expiry_failed", error=type(error).__name__)
            await asyncio.sleep(_EXPIRE_SECONDS)

    async def expire(self) -> None:
        """Forgets jobs and idempotency keys whose time has come, and counts what waits.

        Raises:
            StoreUnavailable: the store is away.
        """
        self._metrics.jobs.labels("expired").inc(await self._jobs.store.expire(self._now()))
        await self._jobs.store.keys.expire(self._now())
        self._metrics.waiting.set(await self._jobs.store.waiting())
