"""Likelihood ratios of a block's score, marked over unmarked, as tables over cells."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.edit_paths import STRENGTHS
from ttmark.shared.watermark.likelihood.laws import Cells, Floats
from ttmark.shared.watermark.likelihood.mixtures import POINTS, Mixtures, load_mixtures, moved
from ttmark.shared.watermark.watermark import Watermark

Words = NDArray[np.uint64]

# Of blocks that a path takes for marked: so many carry no mark after all, whatever p was.
_UNMARKED = 0.03
# Of blocks after a context that was there before: a generator marks none of them, but another text may hold
# them for the first time.
_SPENT = 0.75

NEUTRAL, PLAIN = 0, 1
"""Classes of blocks: with L = 1 whatever the score is, and without a reader."""


@dataclass(frozen=True, slots=True, eq=False)
class Ratios:
    """Tables by strength and class of the block: neutral, plain, read; then plain and read once more, spent.

    Attributes:
        ratios: L [strengths, classes, cells]; its mean over `null` is 1.
        null: of a score without the mark [cells].
        limits: upper ends of the cells of marked scores among 64-bit words [strengths, classes, cells].
        guides: cell of the least word with each first byte [strengths, classes, 256].
        mixtures: how blocks that were read fall into classes.
    """

    ratios: Floats
    null: Floats
    limits: Words
    guides: Cells
    mixtures: Mixtures

    @classmethod
    def of(cls, watermark: Watermark, mixtures: Mixtures | None = None) -> "Ratios":
        """For the watermark's scheme and block size; `mixtures` in place of those that ship."""
        mixtures = mixtures or load_mixtures(watermark.block_size)
        laws = watermark.law(np.array(POINTS))  # [points, cells]
        null = laws[-1]
        fitted = np.concatenate([mixtures.plain[None], mixtures.read])  # [classes, points]
        marked = []
        for points in STRENGTHS:
            fresh = _UNMARKED * null + (1.0 - _UNMARKED) * (moved(fitted, points) @ laws)
            marked.append(np.concatenate([null[None], fresh, _SPENT * null + (1.0 - _SPENT) * fresh]))
        shares = np.stack(marked)
        possible = null > 0.0
        ratios = np.ones_like(shares)
        ratios[..., possible] = shares[..., possible] / null[possible]
        limits = _word_limits(shares)
        bytes_ = np.arange(256, dtype=np.uint64) << np.uint64(56)
        guides = np.stack(
            [[np.searchsorted(row[:-1], bytes_, side="right") for row in rows] for rows in limits]
        ).astype(np.uint16)
        return cls(np.ascontiguousarray(ratios), null, limits, guides, mixtures)

    def spent(self, classes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The classes [N] of blocks that follow a context which was there before."""
        return np.where(classes == NEUTRAL, NEUTRAL, classes + len(self.mixtures.read) + 1)


def _word_limits(shares: Floats) -> Words:
    """Upper ends of the cells of each row of `shares` [.., cells] among 64-bit words."""
    ends = np.cumsum(shares, axis=-1) * 2.0**64
    return np.minimum(ends, float(2**64 - 2**11)).astype(np.uint64)
