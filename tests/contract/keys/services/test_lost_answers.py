"""Answers that are lost on the way, with both clients: what was asked for is done once all the same."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.harness.breaking_proxy import BreakingProxy
from tests.unit.shared.either_client import EitherClient
from ttmark.shared.access.scopes import TokenLimits
from ttmark.shared.cases.signed_file import CaseKey, case_file
from ttmark.shared.client import Client

KEY = CaseKey.generate()
NO_LIMITS = TokenLimits(requests_per_minute=0, documents_per_minute=0)
JOB: dict[str, Any] = {"mode": "direct", "inputs": [{"text": "the text of a job"}]}


@pytest.fixture(scope="module")
def service(start_kept: Callable[..., Any]) -> Any:
    return start_kept(KEY, TTMARK_JOB_WORKERS="0")


@pytest.fixture
def proxy(service: Any) -> Iterator[BreakingProxy]:
    with BreakingProxy(urlsplit(service.url).port or 0) as proxy:
        yield proxy


@pytest.fixture
def token(cluster: Any) -> str:
    return str(cluster.operator.token(limits=NO_LIMITS))


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, proxy: BreakingProxy, token: str) -> Iterator[EitherClient]:
    with EitherClient(request.param, proxy.url, token) as client:
        yield client


def held(own_redis: Any, kind: str) -> int:
    """How many jobs or cases the store has."""
    with own_redis.client() as redis:
        return int(redis.zcard(f"{{ttmark}}:{kind}:expiry"))


def test_one_call_keeps_one_case_however_many_answers_are_lost(client, proxy, own_redis):
    before = held(own_redis, "cases")
    case = case_file({"format": "ttmark-case/1", "signing_key": KEY.public.name, "result": {}}, KEY)
    proxy.breaks = 2
    stored = client.store_case(case)
    assert proxy.lost == 2
    assert held(own_redis, "cases") - before == 1
    assert client.stored_case(stored.id).case == case
    client.delete_case(stored.id)
    with pytest.raises(Client.Refused, match="no such case") as refused:
        client.stored_case(stored.id)
    assert refused.value.status == 404


def test_a_job_is_made_once_waited_for_and_read_while_answers_are_lost(client, proxy, own_redis):
    before = held(own_redis, "jobs")
    proxy.breaks = 2
    job = client.submit_job({**JOB, "inputs": [{"text": f"text {number}"} for number in range(70)]})
    assert held(own_redis, "jobs") - before == 1
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
    before = held(own_redis, "jobs")
    with ExitStack() as stack:
        replicas = cluster.of("detect")[:2] * 6
        clients = [stack.enter_context(Client(replica.url, token)) for replica in replicas]
        pool = stack.enter_context(ThreadPoolExecutor(len(clients)))
        asked = [pool.submit(one.submit_job, JOB, idempotency_key="order-7") for one in clients]
        answers = [one.result() for one in asked]
    assert len(set(map(str, answers))) == 1
    assert held(own_redis, "jobs") - before == 1
