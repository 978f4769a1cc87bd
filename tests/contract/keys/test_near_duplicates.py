"""Questions about passages, counted in memory and on a real Redis."""

import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterable
from typing import Any

import numpy as np
import pytest

from ttmark.detect_service.letters import letters_of
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.limits.counters import Counters, LocalCounters
from ttmark.shared.limits.near_duplicates import Content, NearDuplicateThrottle
from ttmark.shared.limits.redis_counters import RedisCounters
from ttmark.shared.limits.variants import CELLS, DIGESTS, Inquiry, Question, Refusal, VariantRule
from ttmark.shared.vault.redis_address import RedisAddress

LIMIT = 12
DAY = 86_400.0
NOON = 1_000 * DAY + DAY / 2  # a generation of half a day begins
RULE = VariantRule(limit=LIMIT, window_seconds=DAY, findings=2.0)
WORDS = [
    "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=3 + number % 6))
    for number in range(900)
]


@pytest.fixture(params=["local", "redis"])
async def counters(request: pytest.FixtureRequest) -> AsyncIterator[Counters]:
    if request.param == "local":
        made: Counters = LocalCounters()
    else:
        url = request.getfixturevalue("redis_server").url
        made = RedisCounters(RedisAddress.parse(url), budget_seconds=20)
    yield made
    await made.close()


def principal(token_id: str = "token", tenant: str = "acme", *, evidence: bool = False) -> Principal:
    scopes = {Scope.DETECT, Scope.DETECT_EVIDENCE} if evidence else {Scope.DETECT}
    return Principal(token_id, tenant, frozenset(scopes))


class Asker:
    """A caller of a throttle at a time of its own."""

    def __init__(self, counters: Counters, rule: VariantRule = RULE, key: bytes = bytes(32)) -> None:
        self.now = NOON
        self.throttle = NearDuplicateThrottle(counters, key=key, rule=rule, now=lambda: self.now)

    async def ask_all(
        self, texts: Iterable[str], *, caller: Principal | None = None, options: str = "", rate: float = 1e-5
    ) -> Refusal | None:
        sketches = [
            self.throttle.sketch(Content(f"{options}:{text}".encode(), letters_of(text, str), NO_IDS))
            for text in texts
        ]
        return await self.throttle.admit(caller or principal(), sketches, rate=rate)

    async def ask(
        self, text: str, *, caller: Principal | None = None, options: str = "", rate: float = 1e-5
    ) -> Refusal | None:
        return await self.ask_all([text], caller=caller, options=options, rate=rate)

    async def ask_ids(self, ids: list[int]) -> Refusal | None:
        sketch = self.throttle.sketch(Content(str(ids).encode(), "", np.array(ids, dtype=np.int64)))
        return await self.throttle.admit(principal(), [sketch], rate=1e-5)


NO_IDS = np.zeros(0, dtype=np.int64)


def text(seed: int, words: int = 120) -> str:
    """A text of random words; two of them share no passage."""
    return " ".join(random.Random(seed).choices(WORDS, k=words))


def document(seed: int, length: int = 300) -> list[int]:
    return random.Random(seed).choices(range(50_000), k=length)


def with_another_word(original: str, at: int) -> str:
    words = original.split()
    words[at] = f"other{at}"
    return " ".join(words)


async def admitted(asker: Asker, variants: Iterable[str]) -> int:
    """How many of the variants, asked about one after the other."""
    return [await asker.ask(variant) for variant in variants].count(None)


async def test_variants_of_a_passage_are_refused_above_the_limit(counters: Counters) -> None:
    asker, original = Asker(counters), text(1)
    assert await asker.ask(original) is None
    answers = [await asker.ask(with_another_word(original, at)) for at in range(100)]
    assert LIMIT - 1 <= answers.count(None) <= LIMIT + 5
    assert answers[-1] is not None
    assert answers[-1].reason == "variants"
    assert await asker.ask(text(2)) is None


async def test_different_texts_and_repeated_ones_are_admitted(counters: Counters) -> None:
    asker = Asker(counters)
    for number in range(60):
        assert await asker.ask(text(number + 10)) is None
    for _ in range(60):
        assert await asker.ask(text(10)) is None


async def test_the_same_text_with_other_options_is_one_more_question(counters: Counters) -> None:
    asker = Asker(counters)
    answers = [await asker.ask(text(1), options=f"option {number}") for number in range(LIMIT + 5)]
    assert answers.count(None) == LIMIT
    assert await asker.ask(text(1), options="option 3") is None


def shuffled_sentences(number: int) -> str:
    sentences = [text(seed, 14) + "." for seed in range(8)]
    random.Random(number).shuffle(sentences)
    return " ".join(sentences)


def other_case(number: int) -> str:
    chance = random.Random(number)
    return "".join(letter.upper() if chance.random() < 0.5 else letter for letter in text(1))


def with_zero_width(number: int) -> str:
    chance = random.Random(number)
    return "".join(letter + chance.choice(["", "\u200b", "\u2060", "\ufe0f"]) for letter in text(1))


HOMOGLYPHS = {
    "a": "а",
    "e": "е",
    "o": "ο",
    "c": "с",
    "p": "р",
    "i": "і",
    "s": "ѕ",
    "x": "х",
    "d": "ⅾ",
    "m": "ｍ",
}


def with_homoglyphs(number: int) -> str:
    chance = random.Random(number)
    return "".join(HOMOGLYPHS.get(letter, letter) if chance.random() < 0.5 else letter for letter in text(1))


def with_filler(number: int) -> str:
    return f"{text(100 + number, 80)} {text(1)} {text(5_000 + number, 80)}"


def with_punctuation(number: int) -> str:
    chance = random.Random(number)
    return re.sub(" ", lambda _: chance.choice([" ", "  ", ", ", " - ", "\u2800", "\u3164 "]), text(1))


def with_accents(number: int) -> str:
    chance = random.Random(number)
    return "".join(letter + chance.choice(["", "\u0323", "\u0301"]) for letter in text(1))


def with_many_other_words(number: int) -> str:
    """Every fourth word drawn anew, each time others."""
    chance = random.Random(number)
    return " ".join(chance.choice(WORDS) if chance.random() < 0.2 else word for word in text(1).split())


DISGUISES = [
    shuffled_sentences,
    other_case,
    with_zero_width,
    with_homoglyphs,
    with_filler,
    with_punctuation,
    with_accents,
]


@pytest.mark.parametrize("disguise", DISGUISES, ids=lambda disguise: disguise.__name__)
async def test_a_passage_is_known_again_in_disguise(counters: Counters, disguise: Any) -> None:
    assert await admitted(Asker(counters), (disguise(number) for number in range(80))) <= LIMIT + 3


async def test_texts_that_share_four_words_of_five_are_variants(counters: Counters) -> None:
    """Each of them has lost most of its passages to the first, but not all of them."""
    assert await admitted(Asker(counters), (with_many_other_words(number) for number in range(300))) <= 100


async def test_a_random_prefix_of_token_ids_hides_no_passage(counters: Counters) -> None:
    asker = Asker(counters)
    answers = [
        await asker.ask_ids([*document(100 + number, 40), *document(1), *document(900 + number, 40)])
        for number in range(60)
    ]
    assert answers.count(None) <= LIMIT + 2


async def test_a_passage_is_known_again_in_any_script(counters: Counters) -> None:
    chinese = "该命令读取文件并打印包含匹配模式的每一行如果没有给出文件"
    chinese += "则读取标准输入直到结束为止用户可以选择输出格式"

    def variant(number: int) -> str:
        return chinese[: number % 40] + chr(0x4E00 + number) + chinese[number % 40 :]

    assert await admitted(Asker(counters), map(variant, range(80))) <= LIMIT + 12


async def test_a_text_and_three_edits_of_it_are_admitted_in_all_modes(counters: Counters) -> None:
    asker, edited = Asker(counters), text(1)
    for at in (5, 50, 90, 110):
        for mode in ("direct", "aligned", "localized"):
            assert await asker.ask(edited, options=mode) is None
        edited = with_another_word(edited, at)


async def test_callers_and_tenants_count_apart(counters: Counters) -> None:
    asker = Asker(counters)
    for at in range(60):
        await asker.ask(with_another_word(text(1), at), caller=principal("one"))
    assert await asker.ask(text(1), caller=principal("one")) is not None
    assert await asker.ask(text(1), caller=principal("two")) is None
    assert await asker.ask(text(1), caller=principal("one", "other tenant")) is None


@pytest.mark.parametrize("words", ["", "a", "a b", "!", "?!" * 40, "\U0010ffff" * 40])
async def test_the_shortest_and_oddest_documents_are_admitted(counters: Counters, words: str) -> None:
    assert await Asker(counters).ask(words) is None


async def test_a_refused_variant_is_refused_again_however_often_it_is_sent(counters: Counters) -> None:
    asker = Asker(counters)
    await admitted(asker, (with_another_word(text(1), at) for at in range(60)))
    refused = with_another_word(text(1), 59)
    answers = await asyncio.gather(*(asker.ask(refused) for _ in range(5)))
    assert all(answers)


async def test_variants_in_one_request_count_like_variants_in_many_and_refused_ones_not_at_all(
    counters: Counters,
) -> None:
    asker = Asker(counters)
    variants = [with_another_word(text(1), at) for at in range(60)]
    refusal = await asker.ask_all(variants)
    assert refusal is not None
    assert LIMIT <= refusal.index <= LIMIT + 5
    assert await asker.ask_all(variants[:LIMIT]) is None


async def test_parallel_requests_get_no_more_answers_than_others(counters: Counters) -> None:
    asker = Asker(counters)
    answers = await asyncio.gather(*(asker.ask(text(1), options=str(number)) for number in range(50)))
    assert answers.count(None) == LIMIT


async def test_questions_are_admitted_again_after_the_wait_that_was_told(counters: Counters) -> None:
    asker = Asker(counters)
    for number in range(LIMIT):
        await asker.ask(text(1), options=str(number))
    refusal = await asker.ask(text(1), options="more")
    assert refusal is not None
    assert DAY / 2 < refusal.wait_seconds <= DAY
    asker.now += refusal.wait_seconds - 60
    assert await asker.ask(text(1), options="more") is not None
    asker.now += 120
    assert await asker.ask(text(1), options="more") is None


async def test_a_flood_of_small_documents_resets_no_count_and_pushes_nobody_out(counters: Counters) -> None:
    """100 requests of 256 documents, which evicted the counters of the version before."""
    asker, other = Asker(counters), principal("other", "other tenant")
    for number in range(LIMIT):
        await asker.ask(text(1), options=str(number))
        await asker.ask(text(2), options=str(number), caller=other)
    for request in range(100):
        await asker.ask_all(text(10_000 + 256 * request + number, 8) for number in range(256))
    assert await asker.ask(text(1), options="more") is not None
    assert await asker.ask(text(2), options="more", caller=other) is not None


async def test_a_full_space_takes_no_new_text_and_forgets_no_old_one(counters: Counters) -> None:
    asker = Asker(counters, VariantRule(limit=LIMIT, window_seconds=DAY))
    for number in range(LIMIT):
        await asker.ask(text(1), options=str(number))
    chance = np.random.default_rng(1)
    refusal = None
    for number in range(400):
        cells = chance.integers(0, CELLS, 40_000).astype(np.uint32)
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


async def test_chance_findings_are_rationed_by_the_rate_asked_at(counters: Counters) -> None:
    asker = Asker(counters)
    for request in range(10):
        texts = [text(1_000 * request + number, 30) for number in range(20)]
        assert await asker.ask_all(texts, rate=1e-2) is None
    refusal = await asker.ask(text(77_777), rate=1e-2)
    assert refusal is not None
    assert refusal.reason == "findings"
    assert await asker.ask(text(0, 30), rate=1e-2) is None  # an exact repetition
    assert await asker.ask(text(77_777), rate=1e-2, caller=principal("another")) is None
    asker.now += refusal.wait_seconds + 1
    assert await asker.ask(text(77_777), rate=1e-2) is None


async def test_who_sees_scores_has_a_wider_limit_and_no_ration(counters: Counters) -> None:
    asker, caller = Asker(counters), principal(evidence=True)
    answers = [await asker.ask(text(1), options=str(n), caller=caller, rate=0.1) for n in range(60)]
    assert answers.count(None) == 50
    assert await asker.ask(text(2), caller=caller, rate=0.1) is None
    assert await asker.ask(text(1), options="0") is None


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
