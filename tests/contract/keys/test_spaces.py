"""A tenant's space of counts: what fills it, what it keeps, and that Redis keeps it as memory does."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest
from ttmark.shared.limits.variants import CAPACITY, CELLS, DIGESTS, Inquiry, Question, VariantRule

from tests.contract.keys.asker import DAY, LIMIT, NOON, Asker, principal, text
from ttmark.shared.limits import near_duplicates, redis_spaces
from ttmark.shared.limits.counters import Counters, LocalCounters
from ttmark.shared.limits.redis_counters import RedisCounters
from ttmark.shared.vault.redis_address import RedisAddress


@pytest.fixture
def space_size(counters: Counters, monkeypatch: pytest.MonkeyPatch) -> int:
    """Cells of a space: on Redis a sixteenth of it, and of the capacity; all of it takes a minute to fill."""
    if isinstance(counters, LocalCounters):
        return CELLS
    for module in (near_duplicates, redis_spaces):
        monkeypatch.setattr(module, "CELLS", CELLS // 16)
    monkeypatch.setattr(redis_spaces, "CAPACITY", CAPACITY // 16)
    return CELLS // 16


async def test_a_flood_of_small_documents_resets_no_count_and_pushes_nobody_out(counters: Counters) -> None:
    """More documents than a space has places for, which evicted the counters of the version before."""
    asker, other = Asker(counters), principal("other", "other tenant")
    for number in range(LIMIT):
        await asker.ask(text(1), options=str(number))
        await asker.ask(text(2), options=str(number), caller=other)
    for request in range(DIGESTS // 256 + 1):
        await asker.ask_all(text(10_000 + 256 * request + number, 8) for number in range(256))
    assert await asker.ask(text(1), options="more") is not None
    assert await asker.ask(text(2), options="more", caller=other) is not None


async def test_a_full_space_takes_no_new_text_and_forgets_no_old_one(
    counters: Counters, space_size: int
) -> None:
    asker = Asker(counters, VariantRule(limit=LIMIT, window_seconds=DAY))
    for number in range(LIMIT):
        await asker.ask(text(1), options=str(number))
    chance = np.random.default_rng(1)
    refusal = None
    for number in range(400):
        cells = chance.integers(0, space_size, space_size // 13).astype(np.uint32)
        questions = [Question(number.to_bytes(8, "big"), cells)]
        space = asker.throttle._hash(b"space verdict", b"acme").hex()
        refusal = await counters.ask(Inquiry(space, "flooder", questions, asker.throttle._rule, 0, NOON))
        if refusal is not None:
            break
    assert refusal is not None
    assert refusal.reason in ("space", "variants")
    assert number > 60
    assert await asker.ask(text(1), options="more") is not None
    assert await asker.ask(text(1), caller=principal(tenant="other tenant")) is None


def few_digests(number: int) -> bytes:
    """Of which some have the same place."""
    return (number % 20 + DIGESTS * number).to_bytes(4, "big") * 2


def random_inquiries(seed: int) -> Iterable[Inquiry]:
    """Few cells and digests, so that they meet; times that pass through several generations."""
    chance = np.random.default_rng(seed)
    now = NOON
    for _ in range(120):
        now += float(chance.choice([0.0, 1_000.0, 30_000.0], p=[0.8, 0.15, 0.05]))
        questions = [
            Question(
                few_digests(int(chance.integers(1, 60))),
                chance.integers(0, 40, int(chance.integers(0, 24))).astype(np.uint32),
            )
            for _ in range(int(chance.integers(1, 5)))
        ]
        rule = VariantRule(limit=12, window_seconds=DAY, findings=40e-9)
        yield Inquiry(
            f"space {seed}", str(chance.integers(0, 2)), questions, rule, int(chance.integers(0, 3)), now
        )


async def test_redis_decides_as_the_plain_twin_in_memory(redis_server: Any) -> None:
    shared, reasons = RedisCounters(RedisAddress.parse(redis_server.url), budget_seconds=20), set()
    for seed in range(8):
        local = LocalCounters()
        for inquiry in random_inquiries(seed):
            ours = await local.ask(inquiry)
            assert ours == await shared.ask(inquiry)
            reasons.add(ours and ours.reason)
    await shared.close()
    assert reasons == {None, "variants", "findings"}


async def test_a_reader_of_the_counters_cannot_tell_which_text_was_sent(redis_server: Any) -> None:
    counters = RedisCounters(RedisAddress.parse(redis_server.url), budget_seconds=20)

    async def stored(key: bytes) -> dict[bytes, bytes]:
        await Asker(counters, key=key).ask(text(1))
        with redis_server.client() as client:
            found = {name: client.dump(name) for name in client.keys("*")}
            client.flushall()
        return found

    before = await stored(b"1" * 32)
    assert len(before) == 3
    assert before == await stored(b"1" * 32)
    assert before.keys().isdisjoint(await stored(b"2" * 32))
    await counters.close()


async def test_a_tenant_s_space_on_redis_has_a_fixed_size_and_expires(redis_server: Any) -> None:
    counters = RedisCounters(RedisAddress.parse(redis_server.url), budget_seconds=20)
    asker = Asker(counters)
    await asker.ask_all(text(number, 30) for number in range(256))
    with redis_server.client() as client:
        names = client.keys("*")
        sizes = [client.memory_usage(name) for name in names]
        lifetimes = [client.pttl(name) for name in names]
    await counters.close()
    assert sum(sizes) < 2**20
    assert all(0 < lifetime <= 1000 * DAY for lifetime in lifetimes)
