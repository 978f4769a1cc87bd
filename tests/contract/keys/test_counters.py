"""Counters and the limits on them, in memory and on a real Redis."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from ttmark.shared.access.scopes import Principal, Scope, TokenLimits, Usage
from ttmark.shared.limits.allowances import Grant, LimitMetrics, RateLimiter, TokenAllowance
from ttmark.shared.limits.counters import Counters, FallbackCounters, LocalCounters
from ttmark.shared.limits.redis_counters import RedisCounters
from ttmark.shared.vault.audit_events import AuditEvent
from ttmark.shared.vault.key_store_errors import StoreUnavailable
from ttmark.shared.vault.redis_connections import RedisAddress


async def test_counters_start_at_zero_add_up_and_are_independent(counters: Counters) -> None:
    assert await counters.add({"a": 2, "b": 0}, lifetime_seconds=60) == {"a": 2, "b": 0}
    assert await counters.add({"a": 3, "b": -1}, lifetime_seconds=60) == {"a": 5, "b": -1}


async def test_a_counter_is_forgotten_after_its_lifetime(counters: Counters) -> None:
    await counters.add({"a": 2}, lifetime_seconds=0.05)
    await asyncio.sleep(0.15)
    assert await counters.add({"a": 1}, lifetime_seconds=0.05) == {"a": 1}


async def test_additions_at_the_same_time_all_count(counters: Counters) -> None:
    sums = await asyncio.gather(*(counters.add({"a": 1}, lifetime_seconds=60) for _ in range(50)))
    assert sorted(result["a"] for result in sums) == list(range(1, 51))


class Limiter(RateLimiter):
    """Ten in a minute, unless a test says otherwise."""

    async def admit(self, caller: str, cost: int = 1, *, limit: int = 10) -> float | None:
        return await super().admit(caller, cost, limit=limit)


def limiter(counters: Counters, now: Callable[[], float]) -> Limiter:
    return Limiter(counters, window_seconds=60, now=now)


async def test_no_more_than_the_limit_is_admitted_in_a_window(counters: Counters) -> None:
    limit = limiter(counters, lambda: 6000.0)
    answers = [await limit.admit("token") for _ in range(15)]
    assert [answer is None for answer in answers] == [True] * 10 + [False] * 5
    assert await limit.admit("another token") is None


async def test_after_the_wait_that_was_told_the_request_is_admitted(counters: Counters) -> None:
    now = 6000.0
    limit = limiter(counters, lambda: now)
    for _ in range(10):
        await limit.admit("token")
    for _ in range(15):
        wait = await limit.admit("token")
        assert wait is not None
        assert 0 < wait <= 120
        now += wait + 1e-6
        assert await limit.admit("token") is None


async def test_no_interval_of_one_window_sees_much_more_than_the_limit(counters: Counters) -> None:
    now, admitted = 6000.0, []
    limit = limiter(counters, lambda: now)
    for _ in range(300):
        if await limit.admit("token") is None:
            admitted.append(now)
        now += 0.7
    busiest = max(sum(begin <= at < begin + 60 for at in admitted) for begin in admitted)
    # The previous window is taken to have been even: the approximation errs by less than the limit.
    assert busiest <= 15
    assert len(admitted) >= 0.9 * 10 * (300 * 0.7 / 60)


async def test_expensive_requests_count_for_more_and_what_is_refused_for_nothing(counters: Counters) -> None:
    limit = limiter(counters, lambda: 6000.0)
    assert await limit.admit("token", 8) is None
    assert await limit.admit("token", 3) is not None
    assert await limit.admit("token", 2) is None


class AwayCounters(LocalCounters):
    """Counters that cannot be reached, and how often that was tried."""

    def __init__(self) -> None:
        super().__init__()
        self.tries = 0

    async def add(self, *_: object, **__: object) -> dict[str, int]:
        self.tries += 1
        raise StoreUnavailable("away")


async def test_while_the_shared_counters_are_away_each_replica_counts_for_itself() -> None:
    now, away = 0.0, AwayCounters()
    counters = FallbackCounters(away, retry_seconds=2, monotonic=lambda: now)
    limit = limiter(counters, lambda: 6000.0)
    assert counters.shared
    assert [await limit.admit("token", limit=3) is None for _ in range(5)] == [True] * 3 + [False] * 2
    assert away.tries == 1
    assert not counters.shared
    now += 2
    await limit.admit("token", limit=3)
    assert away.tries == 2


@pytest.mark.long
async def test_a_paused_redis_holds_a_request_up_for_a_moment_only(redis_server: Any) -> None:
    counters = FallbackCounters(RedisCounters(RedisAddress.parse(redis_server.url), budget_seconds=0.25))
    redis_server.pause()
    try:
        begin = time.monotonic()
        for _ in range(100):
            await counters.add({"a": 1}, lifetime_seconds=60)
        assert time.monotonic() - begin < 3
    finally:
        redis_server.resume()
        await counters.close()


async def test_local_counters_keep_to_their_number_and_forget_the_least_used_first() -> None:
    counters = LocalCounters(most=100)
    for number in range(1000):
        await counters.add({"often": 1, f"once-{number}": 1}, lifetime_seconds=60)
    assert await counters.add({"often": 0, "once-0": 0, "once-999": 0}, lifetime_seconds=60) == {
        "often": 1000,
        "once-0": 0,
        "once-999": 1,
    }


async def test_a_limit_of_a_thousand_grants_no_more_by_giving_back_in_the_next_minute(counters):
    now = 6000.0
    limit = limiter(counters, lambda: now)
    held, granted = [], 0
    for _ in range(12):  # each minute what the one before was granted comes back, unused
        now += 60
        before, held = held, []
        for grant in before:
            await limit.settle(grant, used=0)
        while isinstance(grant := await limit.take("token", 100, limit=1000), Grant):
            held.append(grant)
            granted = max(granted, sum(one.units for one in held))
    assert granted <= 1000


async def test_what_is_given_back_where_it_was_not_taken_grants_nothing(counters: Counters) -> None:
    limit = limiter(counters, lambda: 6000.0)
    grant = await limiter(LocalCounters(), lambda: 6000.0).take("token", 10, limit=10)
    assert isinstance(grant, Grant)
    await limit.settle(grant, used=0)
    assert [await limit.admit("token") for _ in range(15)].count(None) == 10


async def test_a_token_s_own_limits_replace_the_service_s(counters: Counters) -> None:
    refused: list[AuditEvent] = []
    defaults = TokenLimits(requests_per_minute=3, tokens_per_minute=100)
    metrics = LimitMetrics(CollectorRegistry())
    limits = TokenAllowance("gen", counters, defaults, metrics, refused.append, now=lambda: 6000.0)

    async def admitted(token_id: str, own: TokenLimits) -> int:
        caller = Principal(token_id, "acme", frozenset({Scope.GENERATE}), own)
        return [await limits.admit(caller) for _ in range(20)].count(None)

    assert await admitted("usual", TokenLimits()) == 3
    assert await admitted("more", TokenLimits(requests_per_minute=7)) == 7
    assert await admitted("any", TokenLimits(requests_per_minute=0)) == 20
    usual = Principal("usual", "acme", frozenset({Scope.GENERATE}))
    assert [await limits.take(usual, 5) for _ in range(20)] == [Grant("rate:gen.tokens:usual:100", 5)] * 20
    assert [event.token_id for event in refused] == ["usual"] * 17 + ["more"] * 13
    assert {event.reason for event in refused} == {Usage.REQUESTS}


async def test_what_a_completion_did_not_use_is_granted_again(counters: Counters) -> None:
    tokens = limiter(counters, lambda: 6000.0)
    # More than the whole limit is admitted alone, and counts as the limit.
    first = await tokens.take("token", 5000, limit=100)
    assert isinstance(first, Grant)
    assert await tokens.admit("token", 1, limit=100) is not None
    await tokens.settle(first, used=40)
    second = await tokens.take("token", 60, limit=100)
    assert isinstance(second, Grant)
    assert await tokens.admit("token", 1, limit=100) is not None
    await tokens.settle(second, used=60)
    assert await tokens.admit("token", 1, limit=100) is not None
