"""A process that works on detection jobs until it kills itself at a moment of a part's way."""

import asyncio
import os
import signal
from collections.abc import Collection, Mapping
from typing import Literal

from prometheus_client import CollectorRegistry

from ttmark.detect_service.api.metrics import DetectionMetrics
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.fair_work.fair_queue import FairQueue
from ttmark.detect_service.features.jobs.background import JobWorker
from ttmark.detect_service.features.jobs.job_service import JobMetrics
from ttmark.detect_service.features.jobs.job_store import Claim, PartAnswer
from ttmark.detect_service.features.jobs.part_work import PartWork
from ttmark.detect_service.features.jobs.sealed_jobs import JobStore
from ttmark.detect_service.features.jobs.service import open_jobs
from ttmark.services.composition.key_access import KeyAccess
from ttmark.services.settings.detection import DetectionSettings
from ttmark.shared.events import drop_event

Moment = Literal["claimed", "examined", "answered"]


def work(environment: Mapping[str, str], lease_seconds: float, parts: int, moment: Moment | None) -> None:
    """Works as a replica with these settings would; with a moment until that of the part after `parts`, which
    SIGKILL ends.
    """
    os.environ.update(environment)
    asyncio.run(_work(lease_seconds, parts, moment))


async def _work(lease_seconds: float, parts: int, moment: Moment | None) -> None:
    settings = DetectionSettings()
    registry = CollectorRegistry()
    access = KeyAccess.open(settings, registry, service="detect", port=0, max_age_seconds=60)
    jobs = open_jobs(access)
    jobs.store.lease_seconds = lease_seconds
    if moment is not None:
        _end_at(jobs.store, parts, moment)
    backend = DetectionBackend(access.cache, TokenizerSet.load(settings.tokenizer_folders()), 10_000)
    queue = FairQueue(workers=1, most_jobs=8, started=lambda _: None, abandoned=lambda: None)
    metrics, detection = JobMetrics(registry), DetectionMetrics(registry)
    async with access:
        part_work = PartWork(jobs, means_of(backend), queue, metrics, detection, drop_event)
        await JobWorker(jobs, part_work, metrics, ready=lambda: access.cache.ready).run()


def _end_at(store: JobStore, parts: int, moment: Moment) -> None:
    claim, answer = store.claim, store.answer
    claimed = answered = 0

    def reached(where: Moment, count: int) -> None:
        if where == moment and count > parts:
            os.kill(os.getpid(), signal.SIGKILL)

    async def counted_claim(worker: str, besides: Collection[str] = ()) -> Claim | None:
        nonlocal claimed
        found = await claim(worker, besides)
        claimed += found is not None
        reached("claimed", claimed)
        return found

    async def counted_answer(of: Claim, given: PartAnswer) -> bool:
        nonlocal answered
        reached("examined", answered + 1)
        first = await answer(of, given)
        answered += 1
        reached("answered", answered)
        return first

    store.claim = counted_claim  # type: ignore[method-assign]
    store.answer = counted_answer  # type: ignore[method-assign, assignment]
