"""Questions about passages, counted in memory and on a real Redis."""

import asyncio
import random
import re
from collections.abc import Iterable
from typing import Any

import pytest

from tests.contract.keys.asker import DAY, LIMIT, WORDS, Asker, document, principal, text
from ttmark.shared.limits.counters import Counters


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
