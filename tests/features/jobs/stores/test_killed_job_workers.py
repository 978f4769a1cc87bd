"""Processes that work on a job and are killed: every document is answered, and once."""

import asyncio
import multiprocessing
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.contract.keys.faulty_store import KEK
from tests.harness.job_tenants import provision
from tests.harness.job_worker import work
from ttmark.detect_service.documents.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.features.jobs.job_service import JobMetrics, JobService
from ttmark.detect_service.features.jobs.sealed_jobs import JobLimits, Jobs
from ttmark.detect_service.features.jobs.service import open_job_store
from ttmark.gen_service.demo_model import DEMO_MODEL_PATH
from ttmark.services.settings.store import open_store
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.events import drop_event
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.schemas.detection.jobs import JobRequest, JobResult, JobStatus
from ttmark.shared.tokenization import TextTokenizer

pytestmark = pytest.mark.long

LEASE_SECONDS = 2.0
WORKERS = 2
MOMENTS = ("claimed", "examined", "answered")


async def make_job(store_url: str, folder: Path, texts: list[str], part_documents: int) -> tuple[Any, ...]:
    """A desk over the stores, the caller, and the id of a job with these documents."""
    token = (await provision(folder, store_url))["dear"]
    store = open_store(store_url)
    registry, cache = TokenRegistry(store, KEK), KeyCache(KeyRing(store, KEK))
    caller = await registry.authenticate(token)
    await cache.refresh()
    backend = DetectionBackend(cache, TokenizerSet.load([DEMO_MODEL_PATH]), 10_000)
    limits = JobLimits(part_documents=part_documents)
    jobs = Jobs(open_job_store(store_url, lease_seconds=LEASE_SECONDS), KEK, registry.current, limits)
    desk = JobService(jobs, backend, JobMetrics(CollectorRegistry()), drop_event, None)
    inputs = [Document(text=text) for text in texts]

    async def run(sealing: Callable[[], Any]) -> Any:
        return sealing()

    status = await desk.create(JobRequest(mode="direct", inputs=inputs), caller, "r", run, None)
    await store.close()
    return desk, caller, status.id


def kill_workers(environment: dict[str, str], kills: int, finished: Callable[[], bool]) -> int:
    """Two processes at a time: so many end at a random moment, the last two go on until all is done."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.harness.job_worker"])
    generator = random.Random(5)
    running: list[Any] = []
    started = killed = 0
    deadline = time.monotonic() + 800
    try:
        while not finished():
            assert time.monotonic() < deadline, f"{killed} of {kills} were killed and the job is not done"
            for process in [one for one in running if not one.is_alive()]:
                assert process.exitcode == -signal.SIGKILL
                killed += 1
                running.remove(process)
            while len(running) < WORKERS:
                moment = generator.choice(MOMENTS) if started < kills else None
                given = (environment, LEASE_SECONDS, generator.randrange(4), moment)
                process = context.Process(target=work, args=given)
                process.start()
                started += 1
                running.append(process)
            time.sleep(0.05)
    finally:
        for process in running:
            process.kill()
            process.join()
    return killed


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("documents", "part_documents", "kills"),
    [(500, 8, 5), pytest.param(10_000, 32, 20, marks=pytest.mark.slow)],
)
def test_every_document_is_answered_once_whoever_is_killed(
    store_url: str, tmp_path: Path, documents: int, part_documents: int, kills: int
) -> None:
    environment = {
        "TTMARK_STORE_URL": store_url,
        "TTMARK_KEK_FILE": str(tmp_path / "kek"),
        "TTMARK_TOKENIZERS": str(DEMO_MODEL_PATH),
        "TTMARK_STATE": str(tmp_path),
        "TTMARK_LEDGER_FILE": "none",
    }
    texts = ["The river rose. " * (1 + index % 97) for index in range(documents)]
    with asyncio.Runner() as runner:
        desk, caller, job = runner.run(make_job(store_url, tmp_path, texts, part_documents))

        def status() -> JobStatus:
            answer: JobStatus = runner.run(desk.status(job, caller))
            return answer

        killed = kill_workers(environment, kills, lambda: status().status == "finished")
        assert killed == kills
        done = status()
        assert (done.answered, done.failed) == (documents, 0)
        results: list[JobResult] = []
        offset: int | None = 0
        while offset is not None:
            lines, offset, _ = runner.run(desk.results(job, caller, offset, 1_000))
            results += [JobResult.model_validate_json(line) for line in lines]
        assert [result.index for result in results] == list(range(documents))
        # Each is the answer of its own document: its length says which it was.
        lengths = [result.result.tokens for result in results if result.result]
        tokenizer = TextTokenizer.load(DEMO_MODEL_PATH)
        assert lengths == [len(tokenizer.encode(text)) for text in texts]
        runner.run(desk.jobs.store.close())
