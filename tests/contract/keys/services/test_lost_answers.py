"""Answers that are lost on the way, with both clients: what was asked for is done once all the same."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.harness.raw_server import joined, talking
from tests.unit.shared.either_client import EitherClient
from ttmark.shared.access.scopes import TokenLimits
from ttmark.shared.client import Client

NO_LIMITS = TokenLimits(requests_per_minute=0, documents_per_minute=0)
JOB: dict[str, Any] = {"mode": "direct", "inputs": [{"text": "the text of a job"}]}


@pytest.fixture(scope="module")
def service(cluster: Any) -> Any:
    return cluster.start("detect-lost", {"TTMARK_JOB_WORKERS": "0"})


class Losing:
    """A way to the service that resets the connection when so many answers begin, and counts them."""

    breaks = lost = 0
    url = ""

    def loses(self) -> bool:
        loses = self.breaks > 0
        self.breaks, self.lost = self.breaks - loses, self.lost + loses
        return loses


@pytest.fixture
def proxy(service: Any) -> Iterator[Losing]:
    proxy, host = Losing(), urlsplit(service.url).netloc
    with talking(lambda near, head: joined(near, host, head, proxy.loses)) as where:
        proxy.url = f"http://{where}"
        yield proxy


@pytest.fixture
def token(cluster: Any) -> str:
    return str(cluster.operator.token(limits=NO_LIMITS))


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, proxy: Losing, token: str) -> Iterator[EitherClient]:
    with EitherClient(request.param, proxy.url, token) as client:
        yield client


def held_jobs(own_redis: Any) -> int:
    """How many the store has."""
    with own_redis.client() as redis:
        return int(redis.zcard("{ttmark}:jobs:expiry"))


def test_a_job_is_made_once_waited_for_and_read_while_answers_are_lost(client, proxy, own_redis):
    before = held_jobs(own_redis)
    proxy.breaks = 2
    job = client.submit_job({**JOB, "inputs": [{"text": f"text {number}"} for number in range(70)]})
    assert held_jobs(own_redis) - before == 1
    told: list[int] = []
    proxy.breaks = 1
    end = client.wait_for_job(job.id, lambda now: told.append(now.answered), poll_seconds=0.05)
    assert (end.status, end.answered, told[-1], told) == ("finished", 70, 70, sorted(told))
    proxy.breaks = 1
    assert [one.index for one in client.iter_job_results(job.id)] == list(range(70))
    assert [one.index for one in client.job_results(job.id, limit=1).results] == [0]
    proxy.breaks = 1
    client.delete_job(job.id)
    assert proxy.lost == 5
    with pytest.raises(Client.Refused, match="no such job"):
        client.job(job.id)


def test_equal_submissions_to_two_replicas_make_one_job(cluster: Any, token: str, own_redis: Any) -> None:
    before = held_jobs(own_redis)
    with ExitStack() as stack:
        replicas = cluster.of("detect")[:2] * 6
        clients = [stack.enter_context(Client(replica.url, token)) for replica in replicas]
        pool = stack.enter_context(ThreadPoolExecutor(len(clients)))
        asked = [pool.submit(one.submit_job, JOB, idempotency_key="order-7") for one in clients]
        answers = [one.result() for one in asked]
    assert len(set(map(str, answers))) == 1
    assert held_jobs(own_redis) - before == 1
