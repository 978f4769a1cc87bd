"""The likelihood ratio as a detector: power, keys, rates on hostile texts, and what changes nothing."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.harness.likelihood import detect_likelihood
from ttmark.shared.watermark.detectors.block_scores import position_scores
from ttmark.shared.watermark.likelihood.evidence import (
    LikelihoodEvidence,
    LikelihoodTest,
    log10_of_evidence,
    ratios_of,
)
from ttmark.shared.watermark.likelihood.forward_backward import find_passes
from ttmark.shared.watermark.likelihood.hidden_markov_model import Rows
from ttmark.shared.watermark.likelihood.importance_sampling import NullTail
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.prf import UNKNOWN_TOKEN
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark
from ttmark.shared.watermark.score_distributions import Floats

KEY = bytes(range(16))
WRONG = [bytes([200 + i]) * 16 for i in range(7)]
Write = Callable[..., list[int]]


@pytest.mark.parametrize("name", scheme_names())
@pytest.mark.parametrize("size", [1, 2, 3])
def test_marked_text_is_found_among_other_keys_and_no_other_text_is(
    name: str, size: int, generate: Write
) -> None:
    watermark = Watermark(name, size, 2)
    tokens = generate(watermark, KEY, 420 if name == "dipmark" else 240, 3)
    found = detect_likelihood(watermark, [*WRONG, KEY], tokens)
    assert found.log10_p < -5
    assert found.best == 7
    assert found.of_keys.shape == (8,)
    assert found.log10_e == pytest.approx(math.log10(np.mean(10.0**found.of_keys)))
    assert detect_likelihood(watermark, WRONG, tokens).log10_p > -3


def test_words_before_and_edits_within_take_little(generate: Write) -> None:
    watermark = Watermark("gumbel", 2, 2)
    marked, other = generate(watermark, KEY, 200, 3), np.random.default_rng(1).integers(0, 60, 400).tolist()
    whole = detect_likelihood(watermark, [KEY], marked).log10_p
    late = detect_likelihood(watermark, [KEY], [*other[:201], *marked, *other[201:]]).log10_p
    edited = detect_likelihood(watermark, [KEY], [t for i, t in enumerate(marked) if i % 20 != 7]).log10_p
    assert whole < -12
    assert whole < late < -8
    assert whole < edited < -5


HOSTILE = {
    "loop": [1, 2, 3, 4, 5] * 60,
    "one token": [7] * 200,
    "two answers alike": [*range(100), *range(100)],
    "halves that differ late": [*range(80), 500, *range(80), 501],
    "few words": np.random.default_rng(2).integers(0, 3, 250).tolist(),
    "lost characters": [7, 8, *[UNKNOWN_TOKEN] * 3] * 40,
    "any words": np.random.default_rng(3).integers(0, 50_000, 150).tolist(),
}


LIARS: dict[str, Callable[[Floats], Floats]] = {
    "certain": np.zeros_like,
    "surprised": lambda honest: np.full_like(honest, -20.0),
    "both in turn": lambda honest: np.where(np.arange(honest.size) // 4 % 2, -20.0, -0.01),
    "of another text": lambda honest: honest[::-1].copy(),
    "no numbers": lambda honest: np.full_like(honest, math.nan),
    "any numbers": lambda honest: honest * np.random.default_rng(5).choice([0.1, 1.0, 10.0], honest.size),
}
"""What a reader says instead of what it finds [tokens]."""


@pytest.mark.parametrize("name", scheme_names())
@pytest.mark.parametrize("kind", HOSTILE)
def test_e_exceeds_x_under_wrong_keys_at_most_once_in_x(name: str, kind: str) -> None:
    """Whatever the text is, and whatever a reader says that saw everything but the key."""
    watermark, rng = Watermark(name, 2, 2), np.random.default_rng(4)
    tokens = np.array(HOSTILE[kind])
    keys, honest = [rng.bytes(16) for _ in range(500)], np.log(rng.random(tokens.size))
    for reading in (None, *(Reading(lie(honest)) for lie in LIARS.values())):
        rows = Rows.of(watermark, ratios_of(watermark), [tokens], [reading])
        e = np.concatenate(
            [
                log10_of_evidence(find_passes(), rows.chains[0], cells)
                for _, cells in rows.cells_under_each(watermark, keys)
            ]
        )
        for x in (2.0, 10.0, 100.0):
            limit = len(keys) / x
            assert np.count_nonzero(e >= math.log10(x)) <= limit + 4 * math.sqrt(limit)


@pytest.mark.parametrize("liar", LIARS)
def test_a_reader_that_lies_does_not_raise_the_rate_of_false_positives(liar: str) -> None:
    watermark, rng = Watermark("gumbel", 2, 2), np.random.default_rng(6)
    tokens, honest = rng.integers(0, 50_000, 60), np.log(rng.random(60))
    rows = Rows.of(watermark, ratios_of(watermark), [tokens], [Reading(LIARS[liar](honest))])
    chain, passes = rows.chains[0], find_passes()
    wrong = passes.draw(chain, 1, 1 << 50, np.full(20_000, -1))
    rates = [np.mean(NullTail.draw(passes, chain, -2.0, seed).log10_p(wrong) <= -2.0) for seed in range(4)]
    assert np.mean(rates) < 0.0115


def test_whoever_seeks_texts_with_lucky_draws_finds_none() -> None:
    """The luckiest of 40 texts under a key of the searcher's own has the promised rate under others."""
    watermark, rng = Watermark("gumbel", 2, 2), np.random.default_rng(6)
    passes, keys = find_passes(), [rng.bytes(16) for _ in range(40)]
    rows = Rows.of(watermark, ratios_of(watermark), [rng.integers(0, 50_000, 60)])
    wrong = passes.draw(rows.chains[0], 1, 1 << 50, np.full(20_000, -1))

    def rate(text: list[int], key: bytes) -> float:
        test = LikelihoodTest(watermark, text, rate=0.01, sharp="always")
        return float(np.mean(test._tail([key]).log10_p(wrong) <= -2.0))

    texts = rng.integers(0, 50_000, (40, 60)).tolist()
    luckiest = max(texts, key=lambda text: rate(text, keys[0]))
    assert rate(luckiest, keys[0]) > 0.0115
    assert np.mean([rate(luckiest, key) for key in keys[1:]]) < 0.0105


def test_a_reader_that_sees_the_key_raises_it_so_that_these_tests_can_fail() -> None:
    """It says of blocks with large scores that they were unlikely, of all others that they were certain."""
    watermark, rng = Watermark("gumbel", 1, 2), np.random.default_rng(6)
    tokens, found = rng.integers(0, 50_000, 60), 0
    for key in (rng.bytes(16) for _ in range(200)):
        large = position_scores(watermark, key, tokens) > 1.0
        reading = Reading(np.where(np.concatenate([[False, False], large]), -7.0, 0.0))
        found += detect_likelihood(watermark, [key], tokens, reading=reading, sharp="never").log10_p <= -2.0
    assert found > 100


def test_text_without_new_blocks_is_no_evidence() -> None:
    watermark = Watermark("gumbel", 2, 2)
    for tokens in ([], [1], [1, 2, 3]):
        found = detect_likelihood(watermark, [KEY], tokens)
        assert (found.log10_p, found.log10_e, found.positions) == (0.0, 0.0, 0)


def test_only_what_may_decide_is_drawn_for(generate: Write) -> None:
    watermark = Watermark("gumbel", 2, 2)
    marked, other = generate(watermark, KEY, 120, 3), np.random.default_rng(1).integers(0, 9_000, 120)
    plain = detect_likelihood(watermark, [KEY], marked, sharp="never")
    drawn = detect_likelihood(watermark, [KEY], marked)
    assert plain.draws == 0
    assert plain.log10_p == -plain.log10_e
    assert drawn.draws > 0
    assert drawn.log10_p < plain.log10_p - 0.5
    assert detect_likelihood(watermark, [KEY], other).draws == 0
    assert detect_likelihood(watermark, [KEY], other, sharp="always").draws > 0


def test_an_answer_repeats_and_depends_on_the_secret_a_little(generate: Write) -> None:
    watermark = Watermark("gumbel", 2, 2)
    tokens = generate(watermark, KEY, 100, 3)
    first, again, other = (
        detect_likelihood(watermark, [KEY], tokens, secret=secret).log10_p for secret in (b"a", b"a", b"b")
    )
    assert first == again
    assert first != other
    assert abs(first - other) < 3  # far beyond the draws their largest one decides


def test_nonsense_from_a_reader_takes_power_only(generate: Write) -> None:
    watermark = Watermark("gumbel", 2, 2)
    tokens = generate(watermark, KEY, 80, 3)
    for value in (math.nan, math.inf, -math.inf, 1e300):
        found = detect_likelihood(watermark, [KEY], tokens, reading=Reading(np.full(80, value)))
        assert math.isfinite(found.log10_p)
        wrong = detect_likelihood(watermark, WRONG, tokens, reading=Reading(np.full(80, value)))
        assert wrong.log10_p > -3


@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_texts_without_a_whole_block_have_no_positions(tokens: int) -> None:
    reading = Reading(np.full(tokens, -1.0))
    assert reading.of_blocks(2, 2).size == 0
    assert reading.surprise(2, 2).size == 0


def test_what_no_model_says_is_taken_for_certain() -> None:
    reading = Reading(np.array([math.nan, math.inf, -math.inf, 5.0, -1.0]))
    assert reading.clean.tolist() == [0.0, 0.0, -1000.0, 0.0, -1.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rate": 0.0}, "rate"),
        ({"rate": 1.0}, "rate"),
        ({"tokens": [-1]}, "tokens must be"),
        ({"reading": Reading(np.zeros(3))}, "3 tokens for 60"),
        ({"prf_keys": [b"short"]}, "16 bytes"),
    ],
)
def test_what_cannot_be_asked_is_refused(change: dict[str, object], message: str) -> None:
    question: dict[str, object] = {"prf_keys": [KEY], "tokens": list(range(60)), **change}
    with pytest.raises(ValueError, match=message):
        detect_likelihood(Watermark("gumbel", 2, 2), **question)  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [1, 3, 4])
def test_the_keys_of_each_version_say_what_they_say_by_themselves(size: int) -> None:
    of_keys = np.array([0.5, 7.0, -1.0, 7.0, 2.0, 3.5, 0.0, -4.0, 1.0, 9.0, 9.4, -2.0])
    p_of_keys = np.minimum(0.0, np.round(-of_keys))  # some are equal
    every = LikelihoodEvidence(of_keys, p_of_keys, 100, 90, 7)
    for at, (own, best, log10_p, log10_e) in enumerate(every.of_each(size)):
        mine = slice(at * size, (at + 1) * size)
        alone = LikelihoodEvidence(of_keys[mine], p_of_keys[mine], 100, 90, 7)
        assert (own.positions, own.scored, own.draws) == (100, 90, 7)
        assert own.of_keys.tolist() == alone.of_keys.tolist()
        assert own.p_of_keys.tolist() == alone.p_of_keys.tolist()
        assert (best, log10_p, log10_e) == (alone.best, alone.log10_p, alone.log10_e)
