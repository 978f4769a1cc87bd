"""Score laws beside the schemes themselves, and beside their exact nulls."""

import math
from typing import Any

import numpy as np
import pytest

from ttmark.shared.watermark.nulls import BinomialNull
from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.schemes.registry import build_scheme, scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

RIVALS = 1_000
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in scheme_names()),
    ("gumbel", {"blend": 0.6}),
    ("synthid", {"blend": 0.6}),
    ("synthid", {"weighted": True}),
    ("synthid", {"depth": 7}),
    ("dipmark", {"alpha": 0.45, "layers": 3}),
    ("mcmark", {"channels": 4, "layers": 3}),
]


def sampled(name: str, parameters: dict[str, Any], p: float, texts: int) -> tuple[Any, Any]:
    """Cells of a block of probability p beside many unlikely ones, and how often it is emitted there."""
    scheme = build_scheme(name, parameters)
    rng, size = np.random.default_rng(7), RIVALS + 1
    cells, weights = [], []
    probs = np.concatenate([[p], np.full(RIVALS, (1 - p) / RIVALS)])
    for _ in range(texts // 20):
        words = rng.integers(-(2**63), 2**63, (20 * size, scheme.word_count), dtype=np.int64)
        shared = rng.integers(-(2**63), 2**63, (20, scheme.word_count), dtype=np.int64)
        segments = Segments(np.arange(21) * size)
        after = scheme.reweight(np.tile(probs, 20), words, shared, segments).reshape(20, size)[:, 0]
        cells.append(scheme.cells.of(scheme.score(words[::size], shared)))
        weights.append(after / p)
    return np.concatenate(cells), np.concatenate(weights)


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
@pytest.mark.parametrize("p", [0.15, 0.6])
def test_the_law_of_a_block_is_how_often_its_scheme_emits_it(
    name: str, parameters: dict[str, Any], p: float
) -> None:
    cells, weights = sampled(name, parameters, p, 600)
    law = Watermark(name, 2, 2, parameters).law(np.array([p]))[0]
    for values in (np.arange(law.size), np.arange(law.size) ** 2.0):
        terms = weights * values[cells]
        error = terms.std() / math.sqrt(terms.size) + 0.02 * float(
            law @ values
        )  # rivals are not infinitely many
        assert abs(terms.mean() - law @ values) < 4 * error


@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_laws_are_distributions_and_that_of_certain_blocks_is_the_null(
    name: str, parameters: dict[str, Any]
) -> None:
    watermark = Watermark(name, 2, 2, parameters)
    laws = watermark.law(np.array([1e-12, 0.001, 0.2, 0.7, 0.999, 1.0]))
    assert laws.shape == (6, watermark.cells.count)
    assert laws.min() >= 0.0
    assert np.abs(laws.sum(axis=1) - 1.0).max() < 1e-12
    if isinstance(watermark.null, BinomialNull):
        trials, chance = watermark.null.trials, watermark.null.probability
        exact = [math.comb(trials, k) * chance**k * (1 - chance) ** (trials - k) for k in range(trials + 1)]
        assert np.allclose(laws[-1], exact, rtol=1e-9, atol=0.0)


@pytest.mark.parametrize("name", scheme_names())
def test_unlikely_blocks_score_higher(name: str) -> None:
    laws = Watermark(name, 2).law(np.array([0.05, 0.3, 0.7, 1.0]))
    beyond = np.cumsum(laws[:, ::-1], axis=1)
    assert np.all(np.diff(beyond, axis=0) <= 1e-9)


def test_scores_fall_into_the_cell_that_begins_below_them() -> None:
    cells = Watermark("gumbel", 2).cells
    assert cells.of(np.array([0.0, 0.03, 1 / 32, 1.0, 11.99, 36.04])).tolist() == [0, 0, 1, 32, 383, 383]
