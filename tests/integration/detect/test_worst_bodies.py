"""The worst bodies end no service that has the memory of the manifests, and cost nobody else an answer."""

import asyncio
import json
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.harness.waiting import eventually
from tests.harness.worst_bodies import WORST_BODIES
from tests.integration.detect.neighbours import SMALL_TOKENS
from tests.integration.detect.worst_bodies import Measured, cost, measured_service

pytestmark = pytest.mark.long

SIZE = 8 * 2**20
CPU_SECONDS = 1.0
GROWN_MIB = 100
SILENCE_MS = 500  # a fifth of this and less where nobody else wants the cores; more where others do
ORDINARY = "the river runs under the old bridge and on to the sea " * 20
JOB = "/v1/detect/jobs"
# What is refused as a whole, whatever stands beside it.
NO_JSON = ("nested", "tiny documents")
# One each of text that is white space, of letters, of ids and of no use; the slow tier has all.
QUICK = ("white space", "combining marks", "token ids", "tiny documents")
ALL = [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in WORST_BODIES]
READ = [
    name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)
    for name in WORST_BODIES
    if name not in NO_JSON
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Measured]:
    with measured_service(tmp_path_factory.mktemp("service")) as service:
        yield service


def beside_an_ordinary_one(body: bytes) -> bytes:
    """The body with one more document in front."""
    ordinary = json.dumps({"text": ORDINARY}).encode()
    return body.replace(b'{"inputs": [', b'{"inputs": [' + ordinary + b", ", 1)


@pytest.mark.parametrize("name", ALL)
def test_a_request_is_refused_at_little_cost(service: Measured, name: str) -> None:
    found = cost(service, name, SIZE, service.post, times=3)
    assert found.status == 413
    assert found.cpu_seconds <= CPU_SECONDS, found
    assert found.grown_mib <= GROWN_MIB, found
    assert found.health_p99 <= SILENCE_MS * found.crowding, found
    assert found.neighbour_p99 <= SILENCE_MS * found.crowding, found
    assert service.process.is_running()


@pytest.mark.parametrize("name", READ)
def test_the_document_beside_it_is_answered(service: Measured, name: str) -> None:
    answer = service.post(beside_an_ordinary_one(WORST_BODIES[name](SIZE - 2_000)))
    assert answer.status_code == 200
    ordinary, worst = answer.json()["results"]
    assert (ordinary["verdict"], worst["verdict"]) == ("not_detected", "not_examined")
    assert worst["error"]["code"] == "request_too_large"


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("size", [SIZE, 1_500_000])
def test_so_it_is_in_a_job(service: Measured, name: str, size: int) -> None:
    body = beside_an_ordinary_one(WORST_BODIES[name](size - 2_000))
    service.forget_peak()
    memory = service.process.memory_info().rss
    created = service.post(body, JOB)
    assert created.status_code == 202
    address = f"http://127.0.0.1:{service.port}{JOB}/{created.json()['id']}"
    headers = {"Authorization": f"Bearer {service.tokens['dear']}"}
    eventually(lambda: httpx.get(address, headers=headers, timeout=60).json()["status"] == "finished")
    ordinary, worst = httpx.get(f"{address}/results", headers=headers, timeout=60).json()["results"]
    httpx.delete(address, headers=headers, timeout=60)
    assert ordinary["result"]["verdict"] == "not_detected"
    assert worst["error"]["code"] == "request_too_large"
    assert (service.peak() - memory) / 2**20 <= GROWN_MIB
    assert service.process.is_running()


async def test_connections_that_send_one_byte_hold_up_no_long_body(service: Measured) -> None:
    text = ORDINARY * SMALL_TOKENS
    head = (
        f"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.tokens['dear']}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{"
    )
    writers = []
    for _ in range(24):
        _, writer = await asyncio.open_connection("127.0.0.1", service.port)
        writer.write(head.encode())
        writers.append(writer)
    await asyncio.sleep(0.5)
    began = time.monotonic()
    long = json.dumps({"inputs": [{"text": text[:300_000]}]}).encode()
    answer = await asyncio.to_thread(service.post, long)
    assert answer.status_code == 200
    assert time.monotonic() - began < 15  # it took 34 for each pair of them
    for writer in writers:
        writer.close()
