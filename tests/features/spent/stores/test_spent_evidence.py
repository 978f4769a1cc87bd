"""Answers about rows, counted in memory and on a real Redis."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from tests.contract.keys.test_counters import AwayCounters
from tests.features.spent.stores.asker import DAY, LIMIT, RULE, Asker, principal, rows
from ttmark.detect_service.features.spent.spent_evidence import Keepsake, short
from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.counting_filter import LASTING, SPENT, TURNING, WARM, Names
from ttmark.shared.limits.redis_counters import FallbackCounters
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable


async def test_a_row_is_spent_after_its_answers_whatever_stands_around_it(counters: Counters) -> None:
    asker, passage = Asker(counters), rows(1, 40)
    for number in range(LIMIT + 5):
        document = np.unique(np.concatenate([passage, rows(100 + number)]))
        states = (await asker.ask(document)).states
        of_passage = states[np.searchsorted(document, passage)]
        assert set((of_passage >= SPENT).tolist()) == {number >= LIMIT}
        assert np.count_nonzero(states >= SPENT) == (of_passage.size if number >= LIMIT else 0)


async def test_states_tell_when_half_of_the_answers_are_used_up(counters: Counters) -> None:
    asker = Asker(counters)
    seen = [int((await asker.ask(rows(1), options=str(n))).states.max()) for n in range(LIMIT + 1)]
    assert seen == [0] * 5 + [TURNING] + [WARM] * 5 + [TURNING, LASTING]


async def test_the_same_question_is_free_and_told_the_same(counters: Counters) -> None:
    asker = Asker(counters)
    first = await asker.ask(rows(1), options="first")
    for number in range(LIMIT):
        await asker.ask(rows(1), options=str(number))
        again = await asker.ask(rows(1), options="first")
        assert (again.states.tolist(), again.seed) == (first.states.tolist(), first.seed)
    assert await asker.spent(rows(1), options="more") == 300
    assert (await asker.ask(rows(1), options="more")).seed != first.seed


async def test_tokens_of_a_tenant_count_together_and_tenants_apart(counters: Counters) -> None:
    asker = Asker(counters)
    for number in range(LIMIT):
        await asker.ask(rows(1), options=str(number), caller=principal(f"token {number}"))
    assert await asker.spent(rows(1), options="more", caller=principal("another")) == 300
    assert await asker.spent(rows(1), options="more", caller=principal(tenant="other tenant")) == 0


async def test_documents_at_the_same_time_all_count(counters: Counters) -> None:
    asker = Asker(counters)
    spent = await asyncio.gather(*(asker.spent(rows(1), options=str(number)) for number in range(50)))
    assert sorted(spent) == [0] * LIMIT + [300] * (50 - LIMIT)
    together = await asker.ask_all(
        [np.unique(np.append(rows(2), number)) for number in map(np.uint64, range(20))]
    )
    assert [int(np.count_nonzero(one.states >= SPENT) > 0) for one in together] == [0] * LIMIT + [1] * 8


async def test_one_asker_spends_nothing_of_the_others(counters: Counters) -> None:
    asker = Asker(counters, each=4)
    for number in range(3 * LIMIT):
        assert (await asker.spent(rows(1), options=str(number), asker="one") > 0) == (number >= 4)
    for other in range(2):
        answers = [
            await asker.spent(rows(1), options=f"{other} {n}", asker=f"other {other}") for n in range(4)
        ]
        assert answers == [0] * 4
    assert await asker.spent(rows(1), options="more", asker="a fourth") == 300


async def test_a_question_that_one_asker_spent_is_new_for_another(counters: Counters) -> None:
    asker = Asker(counters, each=4)
    spent = [await asker.spent(rows(1), options=str(number), asker="one") for number in range(6)]
    assert spent == [0] * 4 + [300] * 2
    assert await asker.spent(rows(1), options="5", asker="another") == 0


async def test_rows_count_again_after_the_wait_that_was_told(counters: Counters) -> None:
    asker = Asker(counters)
    for number in range(LIMIT):
        await asker.ask(rows(1), options=str(number))
    wait = (await asker.ask(rows(1), options="more")).wait_seconds
    assert DAY / 2 < wait <= DAY
    asker.now += wait - 60
    assert await asker.spent(rows(1), options="later") == 300
    asker.now += 120
    assert await asker.spent(rows(1), options="even later") == 0


async def test_chance_findings_are_rationed_document_by_document(counters: Counters) -> None:
    asker = Asker(counters)
    documents = [rows(1_000 + number, 30) for number in range(203)]
    standings = await asker.ask_all(documents, rate=1e-2)
    assert [one.refusal and one.refusal.reason for one in standings] == [None] * 200 + ["findings"] * 3
    assert (await asker.ask(documents[0], rate=1e-2)).refusal is None  # an exact repetition
    assert (await asker.ask(rows(7), rate=1e-2, caller=principal("another"))).refusal is None
    refusal = standings[-1].refusal
    assert refusal is not None
    assert refusal.wait_seconds is not None
    asker.now += refusal.wait_seconds + 1
    assert (await asker.ask(rows(8), rate=1e-2)).refusal is None


async def test_a_long_document_counts_in_slices_as_a_whole(counters: Counters) -> None:
    asker, long = Asker(counters, replace(RULE, limit=3)), rows(1, 40_000)
    for number in range(3):
        assert await asker.spent(long, options=str(number)) < 400  # some share a cell by chance
    assert await asker.spent(long, options="more") == long.size
    assert await asker.spent(long[39_000:]) == long[39_000:].size


async def test_what_was_said_is_recalled_by_any_part_of_the_passage(counters: Counters) -> None:
    asker, passage = Asker(counters), rows(1, 60)
    await asker.ledger.remember(principal(), [Keepsake(b"what was said", short(passage), True)])
    for number in range(LIMIT):
        await asker.ask(passage, options=str(number))
    part = await asker.ask(passage[20:50], options="part")
    assert list(part.memories) == [b"what was said"]
    assert list((await asker.ask(rows(2))).memories) == []
    assert list((await asker.ask(passage, caller=principal(tenant="other tenant"))).memories) == []
    asker.now += DAY
    assert list((await asker.ask(passage, options="later")).memories) == []


async def recalled(asker: Asker, passage: Names) -> list[bytes]:
    """What was said of a passage, once its answers are used up."""
    for number in range(LIMIT):
        await asker.ask(passage, options=str(number))
    return list((await asker.ask(passage, options="last")).memories)


async def test_one_caller_s_memories_leave_room_for_those_of_others_and_misses_for_findings(counters):
    """Of 250 misses and 250 findings of a caller; a tenant has a thousand of each."""
    asker = Asker(counters)

    async def keep(caller: str, *kinds: bool, seed: int, count: int = 20) -> None:
        names = short(rows(seed, count))
        kept = [Keepsake(f"{caller} {seed} {kind}".encode(), names, kind) for kind in kinds]
        await asker.ledger.remember(principal(caller), kept)

    for number in range(510):
        await keep("busy", False, seed=1_000 + number)
    await keep("another", False, True, seed=1)
    assert await recalled(asker, rows(1, 20)) == [b"another 1 True", b"another 1 False"]
    await keep("busy", False, True, seed=2)
    assert await recalled(asker, rows(2, 20)) == [b"busy 2 True"]
    for number in range(9):  # a long one takes the room of several
        await keep("long", True, seed=4 + number, count=30 * 4_096)
    assert await recalled(asker, rows(11, 30 * 4_096)[:4_000]) == [b"long 11 True"]
    assert await recalled(asker, rows(12, 30 * 4_096)[:4_000]) == []


async def test_a_later_memory_of_the_same_rows_hides_no_earlier_one(counters: Counters) -> None:
    asker, passage = Asker(counters), rows(1, 60)
    for said in (b"first", b"second", b"third"):
        await asker.ledger.remember(principal(), [Keepsake(said, short(passage), said == b"first")])
    assert sorted(await recalled(asker, passage)) == [b"first", b"second", b"third"]


async def test_one_call_that_fails_makes_nothing_unspent() -> None:
    """It is tried again; where it fails for one tenant alone that tenant is told, and nobody else."""
    away = AwayCounters()
    asker = Asker(FallbackCounters(away))
    names = rows(1)
    for number in range(LIMIT):
        await asker.ask(names, options=str(number))
    space = away.calls[-1]
    away.away = {"once", space}
    assert await asker.spent(names, options="once more") == names.size
    assert away.calls[-3:] == [space, "look", space]
    away.away = {space}
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            await asker.spent(names, options="and again")
    assert await asker.spent(names, caller=principal(tenant="another")) == 0
    away.away.clear()
    assert await asker.spent(names, options="and again") == names.size
