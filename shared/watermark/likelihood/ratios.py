"""Likelihood ratios of a block's score, marked over unmarked, as tables over cells."""

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.edit_paths import STRENGTHS
from ttmark.shared.watermark.likelihood.laws import Cells, Floats
from ttmark.shared.watermark.watermark import Watermark

VERSION = 1
POINTS = (0.003, 0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.4, 0.5, 0.65, 0.8, 0.9, 0.97, 1.0)
"""Values of p that mixtures are over."""


@dataclass(frozen=True, slots=True, eq=False)
class Mixtures:
    """Weights of `POINTS` for blocks of r tokens.

    Attributes:
        plain: without a reader [points].
        limits: rising natural log-probabilities of a block between the classes of a reader [classes - 1].
        read: by class [classes, points].
    """

    plain: Floats
    limits: Floats
    read: Floats

    def classes(self, log_probs: Floats) -> NDArray[np.int64]:
        """The class of blocks that a reader found so likely [N], from 0; those not read count as the last."""
        finite = np.nan_to_num(log_probs, nan=0.0)
        return np.searchsorted(self.limits, finite)


@cache
def load_mixtures(block_size: int) -> Mixtures:
    """Those that ship with the package: fitted to texts of a model, read by another one."""
    file = resources.files("ttmark.shared.watermark") / "tables" / f"mixtures-r{block_size}.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    if data["version"] != VERSION:
        raise ValueError(f"mixtures of version {data['version']}, not {VERSION}")
    return Mixtures(np.array(data["plain"]), np.array(data["limits"]), np.array(data["read"]))


def moved(weights: Floats, points: int) -> Floats:
    """The mixtures [.., points] with every p so many points up, as far as there are: of another strength."""
    last = weights.shape[-1] - 1
    result = np.zeros_like(weights)
    for point in range(last + 1):
        result[..., min(max(point + points, 0), last)] += weights[..., point]
    return result


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
