"""Rows that are drawn from the null: the same in every detector, and the null stays exact."""

import numpy as np
import pytest
from ttmark.detect_service.combined_detector import combined
from ttmark.detect_service.direct_detector import direct
from ttmark.detect_service.position_detectors import aligned

from ttmark.shared.watermark import Watermark, key_lanes
from ttmark.shared.watermark.contexts import scored_positions
from ttmark.shared.watermark.detectors.positions import PositionRows, position_scores
from ttmark.shared.watermark.redrawn import Redrawn

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
def test_positions_of_many_texts_are_redrawn_as_those_of_one(scheme: str) -> None:
    watermark, texts = Watermark(scheme, 2), documents(12, 1)
    redrawn = [some_redrawn(watermark, tokens, seed) for seed, tokens in enumerate(texts)]
    rows = PositionRows.of(watermark, texts, redrawn)
    for keys, scores in rows.scores_under_each(watermark, POOL, 200):
        for key, of_key in zip(POOL[keys], scores, strict=True):
            expected = [reference(watermark, key, *each) for each in zip(texts, redrawn, strict=True)]
            assert np.array_equal(of_key, np.concatenate(expected))
            alone = [position_scores(watermark, key, *each) for each in zip(texts, redrawn, strict=True)]
            assert np.array_equal(of_key, np.concatenate(alone))


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("pool", [POOL[:1], POOL])
def test_direct_detection_redraws_the_rows_of_its_blocks(scheme: str, pool: list[bytes]) -> None:
    watermark, texts = Watermark(scheme, 2), documents(12, 2)
    redrawn = [some_redrawn(watermark, tokens, seed) for seed, tokens in enumerate(texts)]
    found = direct([0] * len(texts))(watermark, [pool], texts, redrawn)
    for tokens, drawn, (tried,) in zip(texts, redrawn, found, strict=True):
        starts = scored_positions(tokens, 2, watermark.context_width)
        sums = []
        for key in pool:
            wholly = [direct([0])(watermark, [[one]], [tokens], None)[0][0].evidence for one in (key, SEED)]
            own, seeded = (one.scores for one in wholly)  # type: ignore[union-attr]
            mask = (
                np.zeros(starts.size, bool) if drawn is None else drawn.rows[starts - watermark.context_width]
            )
            sums.append(np.where(mask, seeded, own))
        best = max(sums, key=lambda one: float(one.sum()))
        assert np.allclose(tried.evidence.scores.sum(), best.sum())  # type: ignore[union-attr]


@pytest.mark.parametrize("scheme", ["synthid", "gumbel"])
def test_spent_rows_alone_are_found_as_often_as_promised(scheme: str) -> None:
    """All rows of a text are spent, and it is asked about 2,000 times: the question alone differs."""
    watermark, key = Watermark(scheme, 2), POOL[0]
    chance = np.random.default_rng(3)
    tokens = chance.integers(0, 50_000, 120)
    rows = np.ones(tokens.size - watermark.context_width - 1, dtype=np.bool_)
    texts = [tokens] * 2_000
    redrawn = [Redrawn(rows, key_lanes(chance.bytes(16))) for _ in texts]
    for detector in (direct([0] * len(texts)), aligned(5.0), combined([0] * len(texts), -2.0)):
        p = np.array(
            [10**tried.evidence.log10_p for (tried,) in detector(watermark, [[key]], texts, redrawn)]
        )
        for rate in (0.01, 0.1):
            assert np.mean(p <= rate) <= rate + 3 * np.sqrt(rate / p.size)
