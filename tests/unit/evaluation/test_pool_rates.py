"""False positives of pools: many keys at once agree with each key alone."""

import math

import numpy as np
import pytest

from ttmark.evaluation.core.pools import KEYS, log10_p_of_each, pool_counts
from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized


@pytest.mark.parametrize("length", [0, 3, 60])
def test_each_key_has_the_p_value_that_detection_gives_it(length: int) -> None:
    watermark, generator = Watermark("synthid", 2, 2, {"depth": 12}), np.random.default_rng(2)
    tokens = generator.integers(0, 9, size=length)
    keys = [generator.bytes(16) for _ in range(5)]
    found = log10_p_of_each(watermark, keys, tokens)
    for detector, alone in (("direct", detect_direct), ("aligned", detect_aligned)):
        each = [alone(watermark, key, tokens).log10_p for key in keys]
        assert found[detector] == pytest.approx(each)
    passages = np.array([detect_localized(watermark, key, tokens).log10_p for key in keys])
    assert (found["scan"] <= passages + 1e-9).all()


def test_pools_of_a_text_share_its_keys() -> None:
    counts = list(pool_counts([Watermark("gumbel", 2, 2)], 5, seed=1))
    trials = {(count.detector, count.text): count.trials for count in counts}
    assert trials["direct", "K = 16"] == 5 * KEYS // 16
    assert trials["scan", "K = 256"] == 5
    assert all(hits <= count.trials * math.sqrt(0.01) for count in counts for hits in count.hits)
