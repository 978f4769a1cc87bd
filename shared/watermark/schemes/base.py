"""What a watermarking scheme has to provide, and what all of them have in common."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.nulls import BinomialNull, Null
from ttmark.shared.watermark.ragged_arrays import Segments
from ttmark.shared.watermark.score_distributions import CellScale, Floats, null_cells

MAX_LAYERS = 16

Parameter = int | float | bool
Probs = NDArray[np.float64]
"""Probabilities of the candidate blocks of all segments [N]."""
_CELLS = 384
Words = NDArray[np.int64]
"""PRF words as signed 64-bit lanes, `word_count` in a row."""

_SEED = 20_250_101
_DRAWS = 8192
# Blocks that share what the emitted one leaves. A scheme that keeps few of them in a layer runs out of rivals
# after some layers; real blocks have few rivals too, and unequal ones.
_RIVALS = 32
# Draws whose mean says how often a score is emitted: a rarer score has the mean of the scores around it.
_LEAST_DRAWS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme(ABC):
    """A distortion-free reweighting rule and the score that detects it.

    A scheme is a frozen dataclass whose fields are its parameters with their defaults; its
    constructor raises ValueError for values out of range. `words` [N, word_count] are those of the
    blocks, `context_words` [.., word_count] those of the contexts. What has to be declared is `name`, `null`,
    `reweight` and `score`; p-values, likelihood ratios and null tables follow from them.

    Attributes:
        blend: below 1 each layer keeps a share of the distribution as it was, the weaker single layer.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    """The scheme in tables and plots; its name where there is none."""
    default_context_width: ClassVar[int] = 4
    tables: ClassVar[Path | None] = None
    """Folder of null tables made for it (`ttmark eval null-tables --out`); None: those that ship."""
    uses_context_words: ClassVar[bool] = False
    """Whether `reweight` and `score` read `context_words`; others may be given none."""

    blend: float = 1.0

    def __post_init__(self) -> None:
        self._check()
        if not 0.0 < self.blend <= 1.0:
            raise ValueError(f"blend must be above 0 and at most 1, not {self.blend}")

    def _check(self) -> None:  # noqa: B027 - not every scheme has one
        """Raises ValueError for a parameter of the scheme's own that is out of range."""

    @property
    def word_count(self) -> int:
        """PRF words of 64 bits that each block needs."""
        return 1

    @property
    @abstractmethod
    def null(self) -> Null:
        """Distribution of `score` over random words."""

    @abstractmethod
    def reweight(self, probs: Probs, words: Words, context_words: Words, segments: Segments) -> Probs:
        """P [N] -> P_w [N]; `context_words` has one row per segment. Segments sum to 1."""

    @abstractmethod
    def score(self, words: Words, context_words: Words) -> NDArray[np.float64]:
        """Score [N] of emitted blocks; `context_words` has one row per block."""

    @property
    def cells(self) -> CellScale:
        """The cells of the score, which is at least 0, that its law is given on."""
        null = self.null
        if isinstance(null, BinomialNull):
            return CellScale(null.trials + 1)
        return CellScale(_CELLS, null.maximum / _CELLS)

    def law(self, probs: Probs) -> NDArray[np.float64]:
        """How the score of an emitted block is distributed: [P, cells], rows sum to 1.

        By simulation of `reweight`; a scheme that knows better says so in place of this.

        Args:
            probs: how likely the block was, in (0, 1] [P]; at 1 the law is the null's.
        """
        return simulated_law(self, probs)

    def _blended(self, before: Probs, after: Probs) -> Probs:
        """(1 - w) P + w F(P), distortion-free because F is and w does not depend on the key."""
        return after if self.blend == 1.0 else before + self.blend * (after - before)


def check_range(name: str, value: int, least: int, most: int) -> None:
    """Raises ValueError unless a parameter is in its range."""
    if not least <= value <= most:
        raise ValueError(f"{name} must be {least} to {most}, not {value}")


def simulated_law(scheme: Scheme, probs: Floats) -> Floats:
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


def _emissions(scheme: Scheme, probability: float) -> tuple[NDArray[np.int64], Floats]:
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
