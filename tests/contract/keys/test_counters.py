"""Counters and the limits on them, in memory and on a real Redis."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from shared.keys import Counters, NearDuplicateThrottle, RateLimiter, StoreUnavailable
from shared.keys.counters import FallbackCounters, LocalCounters
from shared.keys.redis_address import RedisAddress
from shared.keys.redis_counters import RedisCounters


@pytest.fixture(params=["local", "redis"])
async def counters(request: pytest.FixtureRequest) -> AsyncIterator[Counters]:
    if request.param == "local":
        made: Counters = LocalCounters()
    else:
        url = request.getfixturevalue("redis_server").url
        made = RedisCounters(RedisAddress.parse(url), budget_seconds=5)
    yield made
    await made.close()


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


def limiter(counters: Counters, now: Callable[[], float]) -> RateLimiter:
    return RateLimiter(counters, limit=10, window_seconds=60, now=now)


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


async def test_replicas_with_the_same_redis_share_one_limit(redis_server: Any) -> None:
    address = RedisAddress.parse(redis_server.url)
    replicas = [RedisCounters(address, budget_seconds=5) for _ in range(3)]
    limits = [limiter(counters, lambda: 6000.0) for counters in replicas]
    answers = await asyncio.gather(*(limits[i % 3].admit("token") for i in range(30)))
    for counters in replicas:
        await counters.close()
    assert sum(answer is None for answer in answers) == 10


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
    limit = RateLimiter(counters, limit=3, window_seconds=60, now=lambda: 6000.0)
    assert [await limit.admit("token") is None for _ in range(5)] == [True] * 3 + [False] * 2
    assert away.tries == 1
    now += 2
    await limit.admit("token")
    assert away.tries == 2


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


def throttle(counters: Counters) -> NearDuplicateThrottle:
    return NearDuplicateThrottle(counters, limit=20, window_seconds=600)


def document(seed: int, length: int = 300) -> list[int]:
    state = seed
    items = []
    for _ in range(length):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        items.append(state >> 48)
    return items


async def test_many_variants_of_one_document_are_throttled(counters: Counters) -> None:
    limit, text, answers = throttle(counters), document(1), []
    for position in range(0, 200, 2):
        text = [*text]
        text[position] += 1
        answers.append(await limit.admit("token", text))
    first_refusal = next(number for number, answer in enumerate(answers) if answer is not None)
    assert 20 <= first_refusal <= 60
    assert answers[-1] == 600


async def test_different_documents_and_repeated_ones_are_not_throttled(counters: Counters) -> None:
    limit = throttle(counters)
    for number in range(60):
        assert await limit.admit("token", document(number + 10)) is None
    for _ in range(60):
        assert await limit.admit("token", document(10)) is None


async def test_one_caller_s_variants_do_not_count_for_another(counters: Counters) -> None:
    limit = throttle(counters)
    for position in range(60):
        text = document(1)
        text[position] += 1
        await limit.admit("one", text)
    assert await limit.admit("two", document(1)) is None


@pytest.mark.parametrize("items", [[], [1], [1, 2, 3], [2**64 - 1] * 4])
async def test_the_shortest_documents_are_admitted(counters: Counters, items: list[int]) -> None:
    assert await throttle(counters).admit("token", items) is None
