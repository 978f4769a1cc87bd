"""z_emp of many keys and penalties beside the detector's own."""

import numpy as np
import pytest

from ttmark.evaluation.direct_and_aligned import alignment_z, threshold
from ttmark.evaluation.experiment_cells import prf_key
from ttmark.shared.watermark import Watermark, detect_aligned


@pytest.mark.parametrize("block_size", [1, 2, 3])
def test_z_equals_the_detectors(block_size: int) -> None:
    watermark = Watermark("synthid", block_size)
    tokens = np.random.default_rng(7).integers(0, 50, size=60)
    keys = [prf_key(0, index) for index in range(2)]
    found = alignment_z(watermark, tokens, keys, [1.0, 5.0])
    for column, key in enumerate(keys):
        assert found[1, column] == pytest.approx(detect_aligned(watermark, key, tokens, beta=5.0).z)


def test_a_text_too_short_to_score_scores_nothing() -> None:
    found = alignment_z(Watermark("synthid", 2), np.arange(3), [prf_key(0)], [5.0])
    assert found.tolist() == [[0.0]]


@pytest.mark.parametrize("fpr", [0.0, 0.01, 0.1])
def test_at_most_the_promised_share_of_the_null_passes_the_threshold(fpr: float) -> None:
    null = np.random.default_rng(8).normal(size=1_000).round(1)
    limit = threshold(null, fpr)
    assert (null > limit).mean() <= fpr
    assert (null >= limit).mean() > fpr
