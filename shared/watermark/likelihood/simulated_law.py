"""The law of a score by simulation of the scheme itself, for schemes that give none in closed form."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.laws import CellScale, Floats
from ttmark.shared.watermark.nulls import Null
from ttmark.shared.watermark.ragged import Segments

Words = NDArray[np.int64]

_SEED = 20_250_101
_DRAWS = 8192
# Blocks that share what the emitted one leaves. A scheme that keeps few of them in a layer runs out of rivals
# after some layers; real blocks have few rivals too, and unequal ones.
_RIVALS = 32
# Draws whose mean says how often a score is emitted: a rarer score has the mean of the scores around it.
_LEAST_DRAWS = 24


class Reweighting(Protocol):
    """What a scheme has to say for its scores to be simulated."""

    @property
    def word_count(self) -> int: ...
    @property
    def null(self) -> Null: ...
    @property
    def cells(self) -> CellScale: ...
    def reweight(self, probs: Floats, words: Words, context_words: Words, segments: Segments) -> Floats: ...
    def score(self, words: Words, context_words: Words) -> Floats: ...


def null_cells(null: Null, scale: CellScale) -> Floats:
    """How a score without a mark falls into cells [cells], from the null's exact tail."""
    lower = scale.edges()[1:]
    above = np.array([10.0 ** null.log10_tail(float(edge), 1) for edge in lower])
    return np.clip(-np.diff(np.concatenate([[1.0], above, [0.0]])), 0.0, None)


def simulated_law(scheme: Reweighting, probs: Floats) -> Floats:
    """`Scheme.law` [P, cells]: P_w(b) / P(b) of a block of probability p among rivals, over random words.

    At p = 1 it is the null exactly, so that likelihood ratios have mean 1 without a mark whatever the draws
    are: an inexact law costs power and no false alarms. The draws are the same in every process.
    """
    null = null_cells(scheme.null, scheme.cells)
    law = np.tile(null, (probs.size, 1))
    for row, probability in enumerate(probs.tolist()):
        if probability < 1.0:
            law[row] *= _mean_weights(*_emissions(scheme, probability), null.size)
    shares: Floats = law / law.sum(axis=1, keepdims=True)
    return shares


def _mean_weights(cells: NDArray[np.int64], weights: Floats, count: int) -> Floats:
    """Mean weight of the draws in each cell [count]; cells are joined, from above, up to `_LEAST_DRAWS`."""
    order = np.argsort(-cells, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(cells[order])) + 1, cells.size)
    means, first, above = np.ones(count), 0, count
    for end in ends.tolist():
        rest = cells.size - end
        if end - first >= _LEAST_DRAWS and (rest >= _LEAST_DRAWS or rest == 0):
            lowest = int(cells[order[end - 1]]) if rest else 0
            means[lowest:above] = weights[order[first:end]].mean()
            first, above = end, lowest
    return means


def _emissions(scheme: Reweighting, probability: float) -> tuple[NDArray[np.int64], Floats]:
    """Cells of the scores of a block in draws of all words, and how often it is emitted over p [draws]."""
    rng = np.random.default_rng(_SEED)
    size = _RIVALS + 1
    words = rng.integers(-(2**63), 2**63, (_DRAWS * size, scheme.word_count), dtype=np.int64)
    context_words = rng.integers(-(2**63), 2**63, (_DRAWS, scheme.word_count), dtype=np.int64)
    segments = Segments(np.arange(0, _DRAWS * size + 1, size))
    one = np.full(size, (1.0 - probability) / _RIVALS)
    one[0] = probability
    marked = scheme.reweight(np.tile(one, _DRAWS), words, context_words, segments)
    first = segments.starts
    cells = scheme.cells.of(scheme.score(words[first], context_words))
    return cells.astype(np.int64), marked[first] / probability
