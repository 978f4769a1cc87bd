"""Rows that are spent: drawn from the null or silent, so that no detector promises more than it keeps."""

import numpy as np
import pytest

from tests.harness.likelihood import detect_likelihood
from tests.unit.detect_service.held_keys import under
from tests.unit.detect_service.simulated_texts import written
from ttmark.detect_service.detectors import likelihood
from ttmark.detect_service.features.paper.detectors import aligned, direct
from ttmark.shared.watermark.detectors.block_scores import BlockRows, position_scores
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest
from ttmark.shared.watermark.null_replacement import Redrawn
from ttmark.shared.watermark.prf import key_lanes, scored_positions
from ttmark.shared.watermark.schemes.watermark import Watermark

POOL = [bytes([number]) * 16 for number in range(1, 4)]
SEED = bytes(range(16))
SCHEMES = ("synthid", "gumbel", "mcmark", "dipmark")


def documents(count: int, seed: int) -> list[np.ndarray]:
    """Few different tokens, so that rows repeat."""
    chance = np.random.default_rng(seed)
    return [chance.integers(0, 3, int(size)) for size in chance.integers(0, 90, count)]


def some_redrawn(watermark: Watermark, tokens: np.ndarray, seed: int) -> Redrawn | None:
    rows = max(0, tokens.size - watermark.context_width - watermark.block_size + 1)
    if seed % 3 == 0:
        return None
    return Redrawn(np.random.default_rng(seed).random(rows) < 0.4, key_lanes(SEED))


def reference(watermark: Watermark, key: bytes, tokens: np.ndarray, redrawn: Redrawn | None) -> np.ndarray:
    """Scored wholly under the key and wholly under the seed, and put together."""
    own = position_scores(watermark, key, tokens)
    return own if redrawn is None else np.where(redrawn.rows, position_scores(watermark, SEED, tokens), own)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_positions_are_redrawn_under_every_key_of_a_pool(scheme: str) -> None:
    watermark = Watermark(scheme, 2)
    for seed, tokens in enumerate(documents(12, 1)):
        redrawn = some_redrawn(watermark, tokens, seed)
        rows = BlockRows.at_every_position(watermark, tokens, redrawn)
        for keys, scores in rows.scores_under_each(watermark, POOL, 200):
            for key, of_key in zip(POOL[keys], scores, strict=True):
                own = watermark.standardize(of_key)
                assert np.array_equal(own, reference(watermark, key, tokens, redrawn))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("pool", [POOL[:1], POOL])
def test_direct_detection_redraws_the_rows_of_its_blocks(scheme: str, pool: list[bytes]) -> None:
    watermark, texts = Watermark(scheme, 2), documents(12, 2)
    redrawn = [some_redrawn(watermark, tokens, seed) for seed, tokens in enumerate(texts)]
    for tokens, drawn in zip(texts, redrawn, strict=True):
        tried = under(direct(0), watermark, pool, tokens, drawn)
        starts = scored_positions(tokens, 2, watermark.context_width)
        sums = []
        for key in pool:
            wholly = [under(direct(0), watermark, [one], tokens).evidence for one in (key, SEED)]
            own, seeded = (one.scores for one in wholly)  # type: ignore[union-attr]
            mask = (
                np.zeros(starts.size, bool) if drawn is None else drawn.rows[starts - watermark.context_width]
            )
            sums.append(np.where(mask, seeded, own))
        best = max(sums, key=lambda one: float(one.sum()))
        assert np.allclose(tried.evidence.scores.sum(), best.sum())  # type: ignore[union-attr]


@pytest.mark.parametrize("scheme", ["synthid", "gumbel"])
def test_spent_rows_alone_are_found_as_often_as_promised(scheme: str) -> None:
    """All rows of a text are spent, and it is asked about 1,000 times: the question alone differs."""
    watermark, key = Watermark(scheme, 2), POOL[0]
    chance = np.random.default_rng(3)
    tokens = chance.integers(0, 50_000, 120)
    rows = np.ones(tokens.size - watermark.context_width - 1, dtype=np.bool_)
    redrawn = [Redrawn(rows, key_lanes(chance.bytes(16))) for _ in range(1_000)]
    for detector in (direct(0), aligned(5.0)):
        p = np.array(
            [10 ** under(detector, watermark, [key], tokens, one).evidence.log10_p for one in redrawn]
        )
        for rate in (0.01, 0.1):
            assert np.mean(p <= rate) <= rate + 3 * np.sqrt(rate / p.size)


@pytest.mark.parametrize("scheme", ["synthid", "gumbel"])
def test_to_the_likelihood_ratio_a_spent_row_says_nothing_under_any_key(scheme: str) -> None:
    watermark, lanes = Watermark(scheme, 2), key_lanes(SEED)
    (tokens,) = written(watermark, POOL[:1], 60, 8)
    rows = tokens.size - watermark.context_width - 1
    chance = np.random.default_rng(4)

    def found(spent: np.ndarray) -> np.ndarray:
        detector = likelihood(-2.0, b"", lambda _: None)
        figures = under(detector, watermark, POOL, tokens, Redrawn(spent, lanes)).evidence
        return figures.of_keys  # type: ignore[union-attr]

    whole = detect_likelihood(watermark, POOL, tokens).of_keys
    assert np.array_equal(found(np.zeros(rows, dtype=np.bool_)), whole)
    assert np.allclose(found(np.ones(rows, dtype=np.bool_)), 0.0, atol=1e-9)
    beginning = np.arange(rows) < 40
    kept = tokens[40:]  # what is left is as the rest by itself, but for the prior of where a run begins
    rest = detect_likelihood(watermark, POOL, kept).of_keys
    assert abs(found(beginning)[0] - rest[0]) < 0.5 < whole[0] - rest[0]
    some = chance.random(rows) < 0.5
    test = LikelihoodTest(watermark, tokens, silent=some, sharp="never")
    assert np.array_equal(found(some), test.under(POOL).of_keys)


@pytest.mark.parametrize("scheme", ["synthid", "gumbel"])
def test_what_is_left_of_a_spent_text_is_found_under_wrong_keys_as_rarely_as_promised(scheme: str) -> None:
    watermark, chance = Watermark(scheme, 2), np.random.default_rng(5)
    (tokens,) = written(watermark, POOL[:1], 60, 8)
    rows = chance.random(tokens.size - watermark.context_width - 1) < 0.4
    test = LikelihoodTest(watermark, tokens, silent=rows, rate=0.01, sharp="always")
    p = 10 ** test.under([chance.bytes(16) for _ in range(4_000)]).p_of_keys
    for rate in (0.01, 0.1):
        assert 0.3 * rate <= np.mean(p <= rate) <= 1.1 * rate + 4 * np.sqrt(rate / p.size)
