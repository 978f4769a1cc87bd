"""How much there is to watermark: entropy, candidates, and the paper's bounds on z (Theorems 1 and 2)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.intervals import Interval, mean
from evaluation.language_model import LanguageModel, penalize, supports
from evaluation.settings import SamplingSetting

PAIRS_PER_TEXT = 8


@dataclass(frozen=True, slots=True)
class EntropyReport:
    """Figures per token of the filtered distributions along texts without a watermark.

    Attributes:
        bits: entropy.
        candidates: mean number of tokens that the filters leave (the paper's m).
        bound: mean of f(P1), the most that any distortion-free watermark can give per token (Theorem 1).
        pair_bound: mean of f(P12) over pairs, likewise per pair (Theorem 2).
    """

    tokens: int
    bits: Interval
    candidates: Interval
    bound: Interval
    pair_bound: Interval

    @property
    def bound_gain(self) -> float:
        """Ratio of the bounds on the aggregate z of pairs and of single tokens at equal length."""
        return self.pair_bound.estimate / (math.sqrt(2) * self.bound.estimate)


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
) -> EntropyReport:
    """Of (prompt, completion) pairs; the intervals treat texts as the independent unit."""
    generator = np.random.default_rng(seed)
    figures, pairs = [], []
    for prompt, completion in texts:
        before = [completion[:position] for position in range(len(completion))]
        rows = supports(penalize(model.logits(prompt, completion), setting, before), setting)
        figures.append(
            [
                np.mean([entropy_bits(row.probs) for row in rows]),
                np.mean([len(row.ids) for row in rows]),
                np.mean([strength_bound(row.probs) for row in rows]),
            ]
        )
        positions = generator.choice(len(rows), size=min(PAIRS_PER_TEXT, len(rows)), replace=False)
        bounds = []
        for position in positions:
            first = rows[position]
            prefix = [*prompt, *completion[:position]]
            candidates = first.ids.tolist()
            paths = [[*before[position], candidate] for candidate in candidates]
            logits = penalize(model.second_logits(prefix, candidates), setting, paths)
            seconds = supports(logits, setting)
            joint = np.concatenate([p * row.probs for p, row in zip(first.probs, seconds, strict=True)])
            bounds.append(strength_bound(joint))
        pairs.append(np.mean(bounds))
    bits, counts, bound = np.array(figures).T
    tokens = sum(len(completion) for _, completion in texts)
    return EntropyReport(tokens, mean(bits), mean(counts), mean(bound), mean(np.array(pairs)))
