"""What jobs need beside their work: calls of webhooks, an end, and somebody who watches how many wait."""

import asyncio
import time
from collections.abc import Callable

import structlog

from ttmark.detect_service.jobs.job_metrics import JobMetrics
from ttmark.detect_service.jobs.jobs import Jobs, status_of
from ttmark.detect_service.jobs.sealing import open_head

# Attempts come after 10, 20, 40, ... seconds; the last one 21 minutes after the one before.
MOST_CALLS = 9
_PAUSE_SECONDS = 10.0
_CALL_SECONDS = 1.0
_EXPIRE_SECONDS = 30.0
_FAILED_SECONDS = 5.0


class JobUpkeep:
    """Every replica does it; each call and each end is one replica's."""

    def __init__(self, jobs: Jobs, metrics: JobMetrics, *, now: Callable[[], float] = time.time) -> None:
        self._jobs = jobs
        self._metrics = metrics
        self._now = now
        self._log = structlog.get_logger("ttmark.jobs")

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        expired_at = -_EXPIRE_SECONDS
        while True:
            try:
                if time.monotonic() - expired_at >= _EXPIRE_SECONDS:
                    expired_at = time.monotonic()
                    await self.expire()
                if not await self.call_once():
                    await asyncio.sleep(_CALL_SECONDS)
            except Exception as error:
                self._log.warning("job_upkeep_failed", error=type(error).__name__)
                await asyncio.sleep(_FAILED_SECONDS)

    async def expire(self) -> None:
        """Forgets jobs and idempotency keys whose time has come, and counts what waits.

        Raises:
            StoreUnavailable: the store is away.
        """
        self._metrics.jobs.labels("expired").inc(await self._jobs.store.expire(self._now()))
        await self._jobs.store.keys.expire(self._now())
        self._metrics.waiting.set(await self._jobs.store.waiting())

    async def call_once(self) -> bool:
        """Tells of one finished job, if one is due.

        Raises:
            KeyStoreError: the store is away, or the job does not open.
        """
        due = await self._jobs.store.next_call(self._now(), pause_seconds=_PAUSE_SECONDS)
        if due is None:
            return False
        job_id = due.job.job_id
        opened = await open_head(self._jobs.kek, job_id, due.job.head)
        address, webhooks = opened.head.options.webhook, self._jobs.webhooks
        body = (
            b'{"type":"job.finished","data":%b}' % status_of(due.job, opened.head).model_dump_json().encode()
        )
        taken = webhooks is not None and address is not None and await webhooks.call(address, job_id, body)
        outcome = "taken" if taken else "given_up" if due.attempt >= MOST_CALLS else "failed"
        self._metrics.calls.labels(outcome).inc()
        if outcome != "failed":
            await self._jobs.store.called(job_id)
        return True
