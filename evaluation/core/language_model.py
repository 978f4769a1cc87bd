"""A simulated language model: next-token distributions without tokens.

Steps are either confident (nearly one candidate) or open (a Zipf-like tail); how many are confident
varies by document. Top-k 50 and top-p 0.95 as in the paper.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.watermark.ragged import Segments

TOP_K, TOP_P = 50, 0.95
# The one knob, set so that single-token SynthID-Text has a median p of 1e-5 at 200 tokens, the paper's
# entropy: `python -m evaluation.core calibration`.
CONFIDENT_SHARE = 0.615
# Beta distribution of a document's confident share: this many prior steps.
CONCENTRATION = 12.0


@dataclass(frozen=True)
class Blocks:
    """A ragged batch of block distributions."""

    probs: NDArray[np.float64]  # [N]
    segments: Segments


def confident_shares(
    documents: int, rng: np.random.Generator, mean: float = CONFIDENT_SHARE
) -> NDArray[np.float64]:
    """The share of confident steps of each document."""
    return rng.beta(mean * CONCENTRATION, (1.0 - mean) * CONCENTRATION, documents)


def block_distributions(share: NDArray[np.float64], block_size: int, rng: np.random.Generator) -> Blocks:
    """The joint distribution of one block per entry of `share` [S], after the filters.

    Every branch has next-token distributions of its own.
    """
    blocks = _steps(share, rng)
    for _ in range(block_size - 1):
        branches = _steps(share[blocks.segments.ids], rng)
        probs = branches.segments.spread(blocks.probs) * branches.probs
        offsets = branches.segments.offsets[blocks.segments.offsets]
        blocks = Blocks(probs, Segments(offsets))
    return blocks


def _steps(share: NDArray[np.float64], rng: np.random.Generator) -> Blocks:
    """One filtered next-token distribution per entry of `share`."""
    count = share.size
    confident = rng.random(count) < share
    exponent = np.where(confident, 1.2, rng.uniform(1.2, 3.0, count))
    tail = np.arange(1, TOP_K + 1) ** -exponent[:, None]  # [count, TOP_K]
    top = rng.uniform(0.9, 1.0, count)
    rest = tail[:, :-1] / tail[:, :-1].sum(axis=1, keepdims=True) * (1.0 - top)[:, None]
    peaked = np.concatenate([top[:, None], rest], axis=1)
    probs = np.where(confident[:, None], peaked, tail / tail.sum(axis=1, keepdims=True))
    kept = np.cumsum(probs, axis=1) - probs < TOP_P
    lengths = kept.sum(axis=1)
    segments = Segments(np.concatenate([[0], np.cumsum(lengths)]))
    return Blocks(segments.normalize(probs[kept]), segments)
