"""How much there is to watermark: entropy, candidates, and the paper's bounds on z (Theorems 1 and 2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.experiment_cells import SamplingSetting
from ttmark.evaluation.intervals import Interval, mean
from ttmark.evaluation.language_model import LanguageModel, block_levels, supports

BLOCKS_PER_TEXT = 4
MAX_PATHS = 20_000
"""First tokens of a block beyond which its bound is not computed."""


@dataclass(frozen=True, slots=True)
class EntropyReport:
    """Figures per token of the filtered distributions along texts without a watermark.

    Attributes:
        bits: entropy.
        candidates: mean number of tokens that the filters leave (the paper's m).
        bounds: means of f over the joint distribution of blocks of 1, 2, ... tokens: the most that any
            distortion-free watermark can give per block (Theorems 1 and 2).
    """

    tokens: int
    bits: Interval
    candidates: Interval
    bounds: tuple[Interval, ...]

    def bound_gain(self, block_size: int) -> float:
        """Ratio of the bounds on the aggregate z of blocks and of single tokens at equal length."""
        blocks = self.bounds[block_size - 1].estimate
        return blocks / (math.sqrt(block_size) * self.bounds[0].estimate)


def strength_bound(probs: NDArray[np.float64]) -> float:
    """f(Q) = sum over x of sqrt(Q(x) - Q(x)^2) (Theorem 1)."""
    return float(np.sqrt(np.maximum(probs - probs**2, 0.0)).sum())


def entropy_bits(probs: NDArray[np.float64]) -> float:
    """Shannon entropy of positive probabilities."""
    return float(-(probs * np.log2(probs)).sum())


def measure_entropy(
    model: LanguageModel,
    setting: SamplingSetting,
    texts: Sequence[tuple[Sequence[int], Sequence[int]]],
    seed: int,
    block_size: int = 2,
) -> EntropyReport:
    """Of (prompt, completion) pairs; the intervals treat texts as the independent unit.

    Raises:
        ValueError: the blocks have too many paths for the bounds up to `block_size` to be computed.
    """
    generator = np.random.default_rng(seed)
    figures, bounds = [], []
    for prompt, completion in texts:
        rows = supports(model.logits(prompt, completion), setting)
        figures.append(
            [
                np.mean([entropy_bits(row.probs) for row in rows]),
                np.mean([len(row.ids) for row in rows]),
                np.mean([strength_bound(row.probs) for row in rows]),
            ]
        )
        positions = generator.choice(len(rows), size=min(BLOCKS_PER_TEXT, len(rows)), replace=False)
        blocks = [
            _bounds(model, setting, prompt, completion[:position], block_size) for position in positions
        ]
        bounds.append(np.mean(blocks, axis=0))
    bits, counts, single = np.array(figures).T
    deeper = np.array(bounds).T[1:]
    tokens = sum(len(completion) for _, completion in texts)
    return EntropyReport(tokens, mean(bits), mean(counts), tuple(mean(row) for row in (single, *deeper)))


def _bounds(
    model: LanguageModel,
    setting: SamplingSetting,
    prompt: Sequence[int],
    before: Sequence[int],
    block_size: int,
) -> list[float]:
    """The bounds of the next 1, 2, ... `block_size` tokens."""
    found = []
    for level in block_levels(model, setting, prompt, before, block_size):
        if len(level.paths) > MAX_PATHS:
            raise ValueError(
                f"{len(level.paths)} paths of {len(level.paths[0])} tokens: too many for the bounds"
            )
        found.append(strength_bound(level.probs))
    return found


def entropy_note(report: EntropyReport) -> str:
    """The line about entropy that goes with every table."""
    return (
        f"Entropy {report.bits.estimate:.2f} bits per token after the filters,"
        f" {report.candidates.estimate:.1f} candidates on average ({report.tokens} tokens);"
        f" the bound of Theorems 1 and 2 on the mean z is of pairs {report.bound_gain(2):.2f} times that of"
        " single tokens (no limit of the gain: a scheme may stay further below the one than below the"
        " other)."
    )
