"""False positives of each detector under a pool keep to their rate."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from tests.unit.detect_service.held_keys import under
from ttmark.detect_service.detectors import likelihood
from ttmark.detect_service.features.paper.detectors import aligned, direct, localized
from ttmark.detect_service.verdict import Detector
from ttmark.shared.watermark.schemes.watermark import Watermark

DETECTORS: dict[str, Callable[[float], Detector]] = {
    "direct": lambda limit: direct(0, limit),
    "direct, any": lambda limit: direct("any", limit),
    "aligned": lambda limit: aligned(5.0, limit),
    "scan": lambda limit: localized("scan", limit),
    "waterseeker": lambda limit: localized("waterseeker", limit),
    "likelihood": lambda limit: likelihood(limit, b"", lambda _: None),
}


@pytest.mark.long
@pytest.mark.parametrize("mode", DETECTORS)
@pytest.mark.parametrize(
    ("keys", "texts", "tokens", "rate"),
    [
        (16, 200, 60, 0.1),
        *(pytest.param(keys, 4_000, 150, 0.01, marks=pytest.mark.slow) for keys in (16, 256)),
    ],
)
def test_false_positives_keep_to_their_rate_under_a_pool(mode, keys, texts, tokens, rate):
    """Texts of random tokens; without the correction four in five would be found."""
    generator, limit = np.random.default_rng(keys), math.log10(rate)
    if mode == "waterseeker":
        texts //= 10
    pool = [generator.bytes(16) for _ in range(keys)]
    documents = list(generator.integers(0, 5_000, (texts, tokens)))
    tried = [under(DETECTORS[mode](limit), Watermark("gumbel", 2), pool, tokens) for tokens in documents]
    reached = [one.evidence.log10_p <= limit for one in tried]
    assert [bool(one.fired) for one in tried] == reached
    print(mode, keys, sum(reached), texts)
    assert sum(reached) <= rate * texts + 4 * np.sqrt(rate * texts)
