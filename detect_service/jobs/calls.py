"""Tells who asked for it that a job is finished."""

import time
from collections.abc import Callable, Collection

from ttmark.detect_service.jobs.job_metrics import JobMetrics
from ttmark.detect_service.jobs.job_store import DueCall
from ttmark.detect_service.jobs.jobs import Jobs, status_of
from ttmark.detect_service.jobs.sealing import open_head
from ttmark.detect_service.jobs.turns import Turns

# Attempts come after 10, 20, 40, ... seconds; the last one 21 minutes after the one before.
MOST_CALLS = 9
_PAUSE_SECONDS = 10.0


class JobCalls:
    """Calls webhooks, one of each tenant at a time. Every replica does it; each call is one replica's."""

    def __init__(self, jobs: Jobs, metrics: JobMetrics, *, now: Callable[[], float] = time.time) -> None:
        self._jobs = jobs
        self._metrics = metrics
        self._now = now

    async def run(self) -> None:
        """Goes on until it is cancelled."""
        await Turns("job_call", self._due, self._call).run()

    async def call_once(self) -> bool:
        """Tells of one finished job, if one is due.

        Raises:
            KeyStoreError: the store is away, or the job does not open.
        """
        due = await self._due()
        if due is None:
            return False
        await self._call(due)
        return True

    async def _due(self, besides: Collection[str] = ()) -> DueCall | None:
        return await self._jobs.store.next_call(self._now(), pause_seconds=_PAUSE_SECONDS, besides=besides)

    async def _call(self, due: DueCall) -> None:
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
