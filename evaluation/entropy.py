"""How much there is to watermark: entropy and candidates of each token."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.experiment_cells import SamplingSetting
from ttmark.evaluation.intervals import Interval, mean
from ttmark.evaluation.language_model import LanguageModel, supports


@dataclass(frozen=True, slots=True)
class EntropyReport:
    """Figures per token of the filtered distributions along texts without a watermark.

    Attributes:
        bits: entropy.
        candidates: mean number of tokens that the filters leave (the paper's m).
    """

    tokens: int
    bits: Interval
    candidates: Interval


def entropy_bits(probs: NDArray[np.float64]) -> float:
    """Shannon entropy of positive probabilities."""
    return float(-(probs * np.log2(probs)).sum())


def measure_entropy(
    model: LanguageModel, setting: SamplingSetting, texts: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> EntropyReport:
    """Of (prompt, completion) pairs; the intervals treat texts as the independent unit."""
    figures = []
    for prompt, completion in texts:
        rows = supports(model.logits(prompt, completion), setting)
        figures.append(
            [np.mean([entropy_bits(row.probs) for row in rows]), np.mean([len(row.ids) for row in rows])]
        )
    bits, counts = np.array(figures).T
    return EntropyReport(sum(len(completion) for _, completion in texts), mean(bits), mean(counts))


def entropy_note(report: EntropyReport) -> str:
    """The line about entropy that goes with every table."""
    return (
        f"Entropy {report.bits.estimate:.2f} bits per token after the filters,"
        f" {report.candidates.estimate:.1f} candidates on average ({report.tokens} tokens)."
    )
