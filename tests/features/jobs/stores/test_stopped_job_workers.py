"""Replicas that are stopped in good order while they work on a part: no document pays for it."""

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
import redis

from tests.harness.job_tenants import JobAsker, provision
from tests.harness.observe.services import free_port
from tests.harness.waiting import eventually
from tests.integration.detect.served import running, service_environment
from ttmark.detect_service.features.jobs.part_work import MOST_ATTEMPTS
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH

pytestmark = pytest.mark.long

RESTARTS = MOST_ATTEMPTS + 1


def is_claimed(folder: Path, store_url: str) -> bool:
    """Whether a worker has a part."""
    if store_url.startswith("redis"):
        with redis.Redis.from_url(store_url) as client:
            streams = list(client.scan_iter("{ttmark}:jobs:parts:*"))
            pending = [client.xpending_range(name, "workers", "-", "+", 9) for name in streams]
        return any(entry["consumer"] != b"nobody" for entries in pending for entry in entries)
    with sqlite3.connect(folder / "jobs.db") as connection:
        return bool(connection.execute("SELECT 1 FROM parts WHERE leased_until > 0").fetchone())


# That no number of releases is an attempt, test_job_store.py says of each store.
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "store_url", [pytest.param("sqlite", marks=pytest.mark.slow), "redis"], indirect=True
)
@pytest.mark.parametrize("restarts", [1, pytest.param(RESTARTS, marks=pytest.mark.slow)])
def test_a_part_survives_more_rolling_restarts_than_it_may_have_attempts(
    tmp_path: Path, store_url: str, restarts: int
) -> None:
    tokens = asyncio.run(provision(tmp_path, store_url))
    human = "\n\n".join(read_human_texts(HUMAN_TEXTS_PATH))
    port = free_port()
    environment = service_environment(tmp_path, port) | {"TTMARK_STORE_URL": store_url}
    command = [sys.executable, "-m", "ttmark.services", "serve", "detect"]
    job = ""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
        asker = JobAsker(client, tokens["dear"])
        for _ in range(restarts):
            with running(command, port, environment) as service:
                job = job or asker.make("localized", [(human * 3)[n:][:150_000] for n in range(3)])
                eventually(lambda: is_claimed(tmp_path, store_url), 60)
                assert stopped(service) == 0
                assert not is_claimed(tmp_path, store_url)
        with running(command, port, environment):
            eventually(lambda: asker.status(job)["status"] == "finished", 200)
            now = asker.status(job)
    assert (now["answered"], now["failed"]) == (3, 0)


def stopped(service: "subprocess.Popen[bytes]") -> int:
    """The exit status of a service that was told to end."""
    service.terminate()
    return service.wait(60)
