"""z_emp of the aligned detector (paper, Eq. 8) for many texts, keys and skip penalties."""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evaluation.intervals import Sample
from shared.watermark import Watermark
from shared.watermark.detectors.alignment import aligned_scores
from shared.watermark.detectors.positions import position_scores


def alignment_z(
    watermark: Watermark, tokens: NDArray[np.int64], keys: Sequence[bytes], betas: Sequence[float]
) -> NDArray[np.float64]:
    """z_emp of one text under each key, [betas, keys]; zeros for a text without a scored block."""
    blocks = tokens.size // watermark.block_size
    columns = [position_scores(watermark, key, tokens) for key in keys]
    scores = np.stack(columns, axis=1)  # [positions, keys]
    if scores.shape[0] == 0:
        return np.zeros((len(betas), len(keys)))
    found = [aligned_scores([scores], watermark.block_size, beta, len(keys)) for beta in betas]
    return np.stack(found) / math.sqrt(blocks)


def threshold(null: Sample, fpr: float) -> float:
    """The smallest value of the null that at most `fpr` of it exceed; a text passes above it."""
    ordered = np.sort(null)
    allowed = math.floor(fpr * len(ordered))
    return float(ordered[len(ordered) - 1 - allowed])
