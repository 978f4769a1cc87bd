"""Counters and the limits on them, in memory and on a real Redis."""

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from tests.harness.waiting import until
from ttmark.shared.access.scopes import Principal, Quota, Scope, TokenLimits
from ttmark.shared.events import Event
from ttmark.shared.limits.counters import Counters, LocalCounters
from ttmark.shared.limits.counting_filter import Inquiry, Reply
from ttmark.shared.limits.rate_limits import Grant, LimitMetrics, RateLimiter, TokenAllowance
from ttmark.shared.limits.redis_counters import FallbackCounters, RedisCounters
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.redis_connections import RedisAddress


async def test_counters_start_at_zero_add_up_and_are_independent(counters: Counters) -> None:
    assert await counters.add("a", 2, lifetime_seconds=60) == {0: 2}
    assert await counters.add("a", 3, lifetime_seconds=60) == {0: 5}
    assert await counters.add("b", -1, lifetime_seconds=60) == {0: -1}


async def test_a_counter_has_its_latest_parts_and_forgets_those_before(counters: Counters) -> None:
    for part in (100, 130, 100, 159):
        parts = await counters.add("a", 1, part=part, lifetime_seconds=60)
    assert parts == {100: 2, 130: 1, 159: 1}
    assert 100 not in await counters.add("a", 1, part=240, lifetime_seconds=60)


async def test_a_counter_is_forgotten_after_its_lifetime(counters: Counters) -> None:
    await counters.add("a", 2, lifetime_seconds=0.05)
    await asyncio.sleep(0.15)
    assert await counters.add("a", 1, lifetime_seconds=0.05) == {0: 1}


async def test_additions_at_the_same_time_all_count(counters: Counters) -> None:
    sums = await asyncio.gather(*(counters.add("a", 1, lifetime_seconds=60) for _ in range(50)))
    assert sorted(result[0] for result in sums) == list(range(1, 51))


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


@pytest.mark.parametrize("seed", range(4))
async def test_nobody_waits_longer_than_a_window_and_none_holds_more_than_the_limit(counters, seed) -> None:
    """Whatever the pace: a wait that was told is enough, and a burst of all is granted at once."""
    chance, now, granted = random.Random(seed), 6000.0 + seed / 3, []
    limit = limiter(counters, lambda: now)
    for _ in range(200):
        cost = chance.choice([1, 1, 1, 3, 10])
        wait = await limit.admit("token", cost)
        if wait is not None:
            assert 0 < wait <= 60
            now += wait + 1e-6
            assert await limit.admit("token", cost) is None
        granted.append((now, cost))
        now += chance.choice([0.0, 0.2, 0.9, 7.0, 61.0])
    busiest = max(sum(cost for at, cost in granted if since <= at < since + 59) for since, _ in granted)
    assert busiest == 10


async def test_a_thousand_at_once_are_granted_and_a_thousand_more_a_minute_later(counters: Counters) -> None:
    now = 6000.9
    limit = limiter(counters, lambda: now)
    for _ in range(2):
        assert [await limit.admit("mails", limit=1000) for _ in range(1000)].count(None) == 1000
        wait = await limit.admit("mails", limit=1000)
        assert wait is not None
        assert 59 <= wait <= 60
        now += 60


async def test_expensive_requests_count_for_more_and_what_is_refused_for_nothing(counters: Counters) -> None:
    limit = limiter(counters, lambda: 6000.0)
    assert await limit.admit("token", 8) is None
    assert await limit.admit("token", 3) is not None
    assert await limit.admit("token", 2) is None


class AwayCounters(LocalCounters):
    """Counters of which some calls fail, and how often they were called."""

    def __init__(self, *away: str) -> None:
        super().__init__()
        self.away = set(away)
        self.calls: list[str] = []

    async def add(self, name: str, amount: int, **how: Any) -> dict[int, int]:
        self._called("look" if name == "look" else "add")
        return await super().add(name, amount, **how)

    async def ask(self, inquiry: Inquiry) -> list[Reply]:
        self._called(f"ask {inquiry.space}")
        return await super().ask(inquiry)

    def _called(self, what: str) -> None:
        self.calls.append(what)
        if what in self.away:
            self.away -= {"once", what} if "once" in self.away else set()
            raise StoreUnavailable("away")


async def test_while_the_shared_counters_are_away_each_replica_counts_for_itself() -> None:
    away = AwayCounters("add", "look")
    counters = FallbackCounters(away, retry_seconds=0.02)
    limit = limiter(counters, lambda: 6000.0)
    assert counters.shared
    assert [await limit.admit("token", limit=3) is None for _ in range(5)] == [True] * 3 + [False] * 2
    assert away.calls == ["add", "look"]
    assert not counters.shared
    away.away.clear()
    await until(lambda: counters.shared)
    assert await limit.admit("token", limit=3) is None
    assert away.calls[-1] == "add"
    await counters.close()


@pytest.mark.long
async def test_a_paused_redis_holds_a_request_up_for_a_moment_only(redis_server: Any) -> None:
    counters = FallbackCounters(RedisCounters(RedisAddress.parse(redis_server.url), budget_seconds=0.25))
    redis_server.pause()
    try:
        begin = time.monotonic()
        for _ in range(100):
            await counters.add("a", 1, lifetime_seconds=60)
        assert time.monotonic() - begin < 3
    finally:
        redis_server.resume()
        await counters.close()


async def test_local_counters_keep_to_their_number_and_forget_the_least_used_first() -> None:
    counters = LocalCounters(most=100)
    for number in range(1000):
        await counters.add("often", 1, lifetime_seconds=60)
        await counters.add(f"once-{number}", 1, lifetime_seconds=60)
    left = [await counters.add(name, 0, lifetime_seconds=60) for name in ("often", "once-0", "once-999")]
    assert [one[0] for one in left] == [1000, 0, 1]


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
    refused: list[Event] = []
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
    assert [await limits.take(usual, 5) for _ in range(20)] == [Grant("taken:gen.tokens:usual", 5, 6000)] * 20
    assert [event.said.get("token_id") for event in refused] == ["usual"] * 17 + ["more"] * 13
    assert {event.said.get("reason") for event in refused} == {Quota.REQUESTS}


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
