"""Likelihood ratios: their mean without the mark, which is the whole promise."""

import numpy as np
import pytest

from ttmark.shared.watermark.likelihood.hidden_markov_model import (
    NEUTRAL,
    PLAIN,
    POINTS,
    Ratios,
    load_mixtures,
)
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

WATERMARKS = [Watermark(name, size) for name in scheme_names() for size in (1, 2, 3)]


@pytest.mark.parametrize("watermark", WATERMARKS, ids=lambda w: f"{w.scheme}-r{w.block_size}")
def test_the_mean_of_every_table_without_the_mark_is_one(watermark: Watermark) -> None:
    """By the null of the score as it is drawn, to the last bit of a sum."""
    ratios = Ratios.of(watermark)
    assert ratios.ratios.min() > 0.0
    assert np.abs(ratios.ratios @ ratios.null - 1.0).max() < 1e-12
    assert np.all(ratios.ratios[:, NEUTRAL] == 1.0)


@pytest.mark.parametrize("name", scheme_names())
def test_the_null_of_the_tables_is_that_of_drawn_scores(name: str) -> None:
    watermark = Watermark(name, 2)
    words = np.random.default_rng(3).integers(0, 2**64, 400_000, dtype=np.uint64)
    counts = np.bincount(watermark.cells.of(watermark.null.draw(words)), minlength=watermark.cells.count)
    expected = Ratios.of(watermark).null * words.size
    common = expected > 20
    distance = float(np.sum((counts[common] - expected[common]) ** 2 / expected[common]))
    assert distance < common.sum() + 4 * np.sqrt(2 * common.sum())


def test_the_discrete_scores_of_gumbel_only_lower_the_mean() -> None:
    """A score is read at the lower end of its word's cell, and L rises with the score."""
    ratios = Ratios.of(Watermark("gumbel", 2))
    assert np.all(np.diff(ratios.ratios[:, PLAIN], axis=1) >= -1e-12)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_mixtures_that_ship_are_distributions(size: int) -> None:
    shipped = load_mixtures(size)
    for weights in (shipped.plain, *shipped.read):
        assert weights.shape == (len(POINTS),)
        assert weights.min() >= 0.0
        assert weights.sum() == pytest.approx(1.0, abs=1e-4)
    assert len(shipped.limits) == len(shipped.read) - 1
    assert np.all(np.diff(shipped.limits) > 0)
