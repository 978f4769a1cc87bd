"""The service over vLLM is told to stop, or loses its engine, under load: what was taken on is answered."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.features.vllm.installed.conftest import LLAMA
from tests.features.vllm.installed.served import VllmService
from tests.harness.random_model import save_random_model
from tests.harness.served_and_stopped import serve_and_stop
from tests.integration.load.test_sigterm import DRAIN_SECONDS, Tally, under_load
from ttmark.services.local.provision import LocalSetup, provision

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

ALL_ROUNDS = 20
LONG = {"model": "tiny", "prompt": "The", "max_tokens": 400, "ignore_eos": True}

Start = Callable[..., VllmService]


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> LocalSetup:
    folder = tmp_path_factory.mktemp("served") / "tiny"
    save_random_model(folder, type(LLAMA)(**LLAMA.to_dict() | {"max_position_embeddings": 512}))
    return provision(str(folder), None, folder.parent / "state")


@pytest.fixture
def start(tmp_path: Path, setup: LocalSetup) -> Iterator[Start]:
    started: list[VllmService] = []

    def start_one(*arguments: Any, **options: Any) -> VllmService:
        started.append(VllmService(setup, tmp_path / str(len(started)), *arguments, **options))
        return started[-1]

    yield start_one
    for service in started:
        service.terminate()
        service.wait()


def watches_another(process: psutil.Process) -> bool:
    """Whether a process has a lifeline, which it has before it loads the model."""
    folder = Path(f"/proc/{process.pid}/fd")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return any("pidfd" in str(each.readlink()) for each in folder.iterdir() if each.is_symlink())
    return False


async def test_ctrl_c_and_two_sigterms_under_load_lose_nothing(start: Start, setup: LocalSetup) -> None:
    """The first ends the drain of no request, in none of the processes; the others change nothing."""
    service = start()
    await asyncio.to_thread(service.wait_until_ready)

    def stop() -> None:
        service.look()
        service.interrupt_all()
        service.terminate()
        service.terminate()

    await under_load(service, setup.token, 0, stop, Tally())
    assert service.left() == []


async def test_an_engine_that_is_killed_fails_all_requests_and_says_so(
    start: Start, setup: LocalSetup
) -> None:
    service = start()
    await asyncio.to_thread(service.wait_until_ready)
    headers = {"Authorization": f"Bearer {setup.token}"}
    async with httpx.AsyncClient(base_url=service.url, headers=headers, timeout=30) as http:
        asked = [
            asyncio.create_task(http.post("/v1/completions", json=LONG | {"stream": number % 2 == 0}))
            for number in range(24)  # more than run at the same time, so that some wait
        ]
        while 'state="running"} 8.0' not in (await http.get("/metrics")).text:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        service.look()
        service.cores[0].kill()
        for answer in await asyncio.gather(*asked):
            if answer.headers["content-type"].startswith("text/event-stream"):
                assert "error" in answer.text.strip().splitlines()[-1]
            else:
                assert answer.status_code >= 500
                assert answer.json()["error"]["type"] == "server_error"
        assert (await http.get("/healthz")).status_code == 503
        assert (await http.get("/readyz")).status_code == 503
        late = await http.post("/v1/completions", json=LONG)
        assert late.status_code == 503
    service.terminate()
    assert await asyncio.to_thread(service.wait) == 0
    # The killed process had a file by which its ranks find each other.
    assert [each for each in service.left() if "vllm_dist_" not in each] == []


def test_no_process_of_vllm_outlives_a_service_that_is_killed_while_it_loads(start: Start) -> None:
    """What an end without warning leaves on the disk is the next start's or the container's to remove."""
    service = start()
    while not any(map(watches_another, service.cores)):
        time.sleep(0.02)
        service.look()
    cores = service.cores
    psutil.Process(service.pid).kill()
    assert service.wait() != 0
    assert psutil.wait_procs(cores, timeout=20)[1] == []


@pytest.mark.slow
@pytest.mark.timeout(7200)
async def test_twenty_terminations_under_load_lose_nothing(
    start: Start, setup: LocalSetup, record_result: Any
) -> None:
    total = Tally()
    for number in range(ALL_ROUNDS):
        service = start()
        await asyncio.to_thread(service.wait_until_ready)
        service.look()
        await under_load(service, setup.token, number, service.terminate, total)
        assert service.left() == []
    record_result(
        f"SIGTERM under load, {ALL_ROUNDS} times, vLLM engine",
        f"0 accepted requests lost, no process, shared memory or file left, drained <= {DRAIN_SECONDS:.0f} s",
        f"0 lost: {total.whole:,} answered whole, {total.refused} refused with 503 and Retry-After, "
        f"{len(total.unanswered)} connections closed before the service read a request; nothing left; "
        f"slowest end {total.slowest:.1f} s",
    )


def test_a_server_that_ends_says_nothing_of_leaks() -> None:
    """vLLM imports Triton, whose bindings name on standard error what outlives the interpreter."""
    process = serve_and_stop("import triton._C.libtriton")
    assert (process.returncode, process.stderr) == (0, "")
