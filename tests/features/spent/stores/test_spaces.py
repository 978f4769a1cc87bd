"""A tenant's space of counts: what fills it, what it keeps, and that Redis keeps it as memory does."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.features.spent.stores.asker import DAY, LIMIT, NOON, RULE, Asker, principal, rows
from ttmark.shared.limits import counting_filter, redis_counters
from ttmark.shared.limits.counters import LocalCounters
from ttmark.shared.limits.counting_filter import CAPACITY, CELLS, CountedDocument, Inquiry
from ttmark.shared.limits.redis_counters import RedisCounters
from ttmark.shared.vault.stores.redis_connections import RedisAddress


async def test_a_full_space_takes_no_new_text_and_forgets_no_old_one(counters, monkeypatch):
    for module in (counting_filter, redis_counters):
        monkeypatch.setattr(module, "CAPACITY", 256 * 100)
    asker = Asker(counters)
    for number in range(LIMIT):
        await asker.ask(rows(1), options=str(number))
    standings = await asker.ask_all([rows(10 + number, 20) for number in range(100)])
    reasons = [one.refusal and one.refusal.reason for one in standings]
    assert reasons == [None] * reasons.count(None) + ["space"] * reasons.count("space")
    assert reasons.count(None) == 85
    assert (await asker.ask(rows(1), options="3")).refusal is None  # an exact repetition
    assert (await asker.ask(rows(1), caller=principal(tenant="other tenant"))).refusal is None
    asker.now += DAY / 2
    assert (await asker.ask(rows(2))).refusal is not None
    asker.now += DAY / 2
    assert (await asker.ask(rows(2))).refusal is None


@pytest.mark.slow
async def test_as_many_documents_as_are_promised_are_answered_and_few_rows_are_spent_by_chance() -> None:
    asker = Asker(LocalCounters(), replace(RULE, findings=1e3))
    spent, documents = 0, CAPACITY // 400
    for number in range(documents):
        spent += await asker.spent(rows(number, 400))
    share = spent / (400 * documents)
    print(f"{documents} documents of 400 rows: {share:.2e} of the rows spent by chance")
    assert share < 1e-2
    assert (await asker.ask(rows(documents + 1, 400))).refusal is not None


def random_inquiries(seed: int) -> Iterable[Inquiry]:
    """Few cells and digests, so that they meet; times that pass through several generations."""
    chance = np.random.default_rng(seed)
    now = NOON
    for _ in range(120):
        now += float(chance.choice([0.0, 1_000.0, 30_000.0], p=[0.8, 0.15, 0.05]))
        questions = []
        for _ in range(int(chance.integers(1, 5))):
            count = int(chance.integers(0, 24))
            digest = int(chance.integers(1, 60)).to_bytes(8, "big")
            cells = chance.integers(0, 40, (2, count)).astype(np.uint32)
            questions.append(CountedDocument(digest, cells, int(chance.integers(0, 3))))
        yield Inquiry(f"space {seed}", str(chance.integers(0, 2)), questions, [4, 12], DAY, 15e-9, now)


async def test_redis_decides_as_the_plain_twin_in_memory(redis_server: Any) -> None:
    shared, reasons = RedisCounters(RedisAddress.parse(redis_server.url), budget_seconds=20), set()
    for seed in range(8):
        local = LocalCounters()
        for inquiry in random_inquiries(seed):
            ours, theirs = await local.ask(inquiry), await shared.ask(inquiry)
            for mine, other in zip(ours, theirs, strict=True):
                assert mine.refusal == other.refusal
                assert mine.states.tolist() == other.states.tolist()
                reasons.add(mine.refusal.reason if mine.refusal else int(mine.states.max(initial=0)))
    await shared.close()
    assert reasons == {"findings", 0, 1, 2, 3, 4}


async def test_a_reader_of_the_counters_cannot_tell_which_text_was_sent(redis_server: Any) -> None:
    counters = RedisCounters(RedisAddress.parse(redis_server.url), budget_seconds=20)

    async def stored(key: bytes) -> dict[bytes, bytes]:
        await Asker(counters, key=key).ask(rows(1))
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
    await asker.ask_all([rows(number, 30) for number in range(256)])
    with redis_server.client() as client:
        names = client.keys("*")
        sizes = [client.memory_usage(name) for name in names]
        lifetimes = [client.pttl(name) for name in names]
    await counters.close()
    assert CELLS < sum(sizes) < 1.1 * CELLS
    assert all(0 < lifetime <= 1000 * DAY for lifetime in lifetimes)
