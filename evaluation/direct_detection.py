"""What direct detection says of many texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ttmark.evaluation.experiment_cells import Cell, prf_key
from ttmark.evaluation.intervals import Interval, Sample, bootstrap, clopper_pearson
from ttmark.evaluation.run_folder import Completion, Run
from ttmark.shared.watermark import DirectEvidence, Watermark, detect_direct

FPRS = (1e-3, 1e-4, 1e-5)
"""Theoretical false positive rates at which the paper states the true positive rate."""


@dataclass(frozen=True, slots=True)
class Detections:
    """One figure per text.

    Attributes:
        log10_p: exact p-value.
        z: the paper's z (Eq. 6). How far it strays by chance differs between schemes.
    """

    log10_p: Sample
    z: Sample

    def rate(self, fpr: float) -> Interval:
        """Share of texts with p <= fpr: the TPR on watermarked texts, the FPR on others."""
        return clopper_pearson(int((self.log10_p <= np.log10(fpr)).sum()), len(self.log10_p))

    @property
    def deviates(self) -> Sample:
        """p-values as normal deviates [texts]: unlike `z`, they compare between schemes."""
        from scipy.stats import norm  # optional: `--help` works without it

        deviates: Sample = norm.isf(10.0**self.log10_p)
        return deviates

    def median_deviate(self) -> Interval:
        """The median p-value as a normal deviate."""
        return bootstrap(lambda values: np.median(values, axis=-1), self.deviates)

    def median_log10_p(self) -> Interval:
        """Median of log10 p."""
        return bootstrap(lambda values: np.median(values, axis=-1), self.log10_p)


def detect_texts(run: Run, cell: Cell, texts: Sequence[Completion], length: int) -> Detections:
    """The first `length` tokens of each text under its own key."""
    watermark = cell.watermark()
    return _detections(
        [detect_direct(watermark, cell.key(run.seed, text.index), text.tokens(length)) for text in texts]
    )


def detect_under_random_keys(
    seed: int, watermark: Watermark, texts: Sequence[Completion], length: int, keys: int
) -> Detections:
    """The null: the first `length` tokens of each text under `keys` keys that had no part in it."""
    evidence = [
        detect_direct(watermark, prf_key(seed, "null", index, text.index), text.tokens(length))
        for text in texts
        for index in range(keys)
    ]
    return _detections(evidence)


def _detections(evidence: Sequence[DirectEvidence]) -> Detections:
    return Detections(np.array([item.log10_p for item in evidence]), np.array([item.z for item in evidence]))
