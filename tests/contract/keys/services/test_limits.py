"""Limits of access tokens, asked of two replicas of each service over one Redis."""

import itertools
import random
import time
from string import ascii_lowercase
from typing import Any

import httpx
import pytest

from ttmark.shared.access.scopes import Scope, TokenLimits

SERVICES = ("gen", "detect")


def assert_throttled(response: Any) -> None:
    assert response.status_code == 429
    assert '"code":"rate_limit_exceeded"' in response.text
    assert 1 <= int(response.headers["retry-after"]) <= 86_400


@pytest.mark.parametrize("service", SERVICES)
def test_requests_over_all_replicas_keep_to_the_token_s_limit(cluster, service):
    token = cluster.operator.token(limits=TokenLimits(requests_per_minute=10))
    other = cluster.operator.token()
    replicas = itertools.cycle(cluster.of(service))

    def refusals() -> float:
        name = 'ttmark_limit_refusals_total{limit="requests"}'
        return sum(replica.metric(name) for replica in cluster.of(service))

    before = refusals()
    answers = [next(replicas).ask(token) for _ in range(16)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429] * 6
    assert_throttled(answers[-1])
    assert next(replicas).ask(other).status_code == 200
    assert refusals() - before == 6


def test_generated_tokens_over_all_replicas_keep_to_the_limit(cluster: Any) -> None:
    token = cluster.operator.token(limits=TokenLimits(tokens_per_minute=60))
    replicas = itertools.cycle(cluster.of("gen"))
    answers = [next(replicas).ask(token, max_tokens=24, ignore_eos=True) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert_throttled(answers[-1])
    assert "tokens per minute" in answers[-1].json()["error"]["message"]


def test_tokens_that_a_client_did_not_wait_for_are_given_back(cluster: Any) -> None:
    token = cluster.operator.token(limits=TokenLimits(tokens_per_minute=200))
    replica = cluster.of("gen")[0]
    body = {"model": "tiny-model", "prompt": "a", "max_tokens": 198, "ignore_eos": True, "stream": True}
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.stream("POST", replica.url + "/v1/completions", json=body, headers=headers) as response:
        assert response.status_code == 200
        next(response.iter_lines())
    time.sleep(0.5)
    assert cluster.of("gen")[1].ask(token, max_tokens=20).status_code == 200


def test_documents_over_all_replicas_keep_to_the_limit(cluster: Any) -> None:
    token = cluster.operator.token(limits=TokenLimits(documents_per_minute=40))
    replicas = itertools.cycle(cluster.of("detect"))
    inputs = [{"token_ids": list(range(start, start + 40))} for start in range(16)]
    answers = [next(replicas).ask(token, inputs=inputs) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert "documents per minute" in answers[-1].json()["detail"]


def test_evidence_is_spent_over_all_replicas_and_other_texts_are_answered(cluster: Any) -> None:
    token, own = cluster.operator.token(Scope.DETECT), "".join(random.choices(ascii_lowercase, k=300))
    replicas = itertools.cycle(cluster.of("detect"))
    results = []
    for number in range(40):
        inputs = [{"text": f"{number} {own}"}, {"text": f"{number} is another text {number}. " * 5}]
        answer = next(replicas).ask(token, inputs=inputs)
        assert answer.status_code == 200
        results.append(answer.json()["results"])
    spent = ["asked_before" in first for first, _ in results]
    # Where Redis does not answer in time on a busy machine, each replica counts for itself for two seconds.
    assert spent[:12] == [False] * 12
    assert spent[36:] == [True] * 4
    assert "no_verdict" not in {result["verdict"] for both in results for result in both}
    assert "asked_before" not in next(replicas).ask(token, inputs=[{"text": own[::-1]}]).json()["results"][0]
    evidence = next(replicas).ask(cluster.operator.token(), inputs=[{"text": own}])
    assert "asked_before" not in evidence.json()["results"][0]


def test_without_the_store_each_replica_holds_the_limits_by_itself_and_says_so(cluster, own_redis):
    token = cluster.operator.token(limits=TokenLimits(requests_per_minute=5))
    replica = cluster.of("detect")[0]
    assert replica.ask(token).status_code == 200
    assert replica.metric("ttmark_limit_counters_shared") == 1
    own_redis.pause()
    try:
        statuses = [replica.ask(token).status_code for _ in range(12)]
        assert statuses.count(200) == 5
        assert statuses.count(429) == 7
        assert replica.metric("ttmark_limit_counters_shared") == 0
    finally:
        own_redis.resume()
