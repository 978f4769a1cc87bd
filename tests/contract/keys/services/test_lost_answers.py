"""Answers that are lost on the way, with both clients: what was asked for is done once all the same."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.harness.breaking_proxy import BreakingProxy
from tests.unit.shared.either_client import EitherClient, either
from ttmark.shared.access.token_limits import TokenLimits
from ttmark.shared.cases.case_file import case_file
from ttmark.shared.cases.case_key import CaseKey

KEY = CaseKey.generate()
NO_LIMITS = TokenLimits(requests_per_minute=0, documents_per_minute=0)
JOB = {"mode": "direct", "inputs": [{"text": "the text of a job"}]}


@pytest.fixture(scope="module")
def service(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    file = tmp_path_factory.mktemp("key") / "case.pem"
    file.write_text(KEY.pem())
    settings = {"TTMARK_CASE_KEY_FILE": str(file), "TTMARK_CASES_KEEP_DAYS": "30", "TTMARK_JOB_WORKERS": "0"}
    yield cluster.start("detect-lossy", settings)
    cluster.stop("detect-lossy")


@pytest.fixture
def proxy(service: Any) -> Iterator[BreakingProxy]:
    with BreakingProxy(urlsplit(service.url).port or 0) as proxy:
        yield proxy


@pytest.fixture
def token(cluster: Any) -> str:
    return str(cluster.operator.token(limits=NO_LIMITS))


@pytest.fixture(params=["sync", "async"])
def client(request: pytest.FixtureRequest, proxy: BreakingProxy, token: str) -> Iterator[EitherClient]:
    with either(request.param, proxy.url, token) as client:
        yield client


def held(own_redis: Any, kind: str) -> int:
    """How many jobs or cases the store has."""
    with own_redis.client() as redis:
        return int(redis.zcard(f"{{ttmark}}:{kind}:expiry"))


def test_one_submission_makes_one_job_however_many_answers_are_lost(
    client: EitherClient, proxy: BreakingProxy, own_redis: Any
) -> None:
    before = held(own_redis, "jobs")
    proxy.breaks = 2
    job = client.submit_job(JOB)
    assert proxy.lost == 2
    assert held(own_redis, "jobs") - before == 1
    assert client.job(job.id).documents == 1


def test_one_call_keeps_one_case_however_many_answers_are_lost(
    client: EitherClient, proxy: BreakingProxy, own_redis: Any
) -> None:
    before = held(own_redis, "cases")
    case = case_file({"format": "ttmark-case/1", "signing_key": KEY.public.name, "result": {}}, KEY)
    proxy.breaks = 2
    stored = client.store_case(case)
    assert proxy.lost == 2
    assert held(own_redis, "cases") - before == 1
    assert client.stored_case(stored.id).case == case
