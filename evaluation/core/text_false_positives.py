"""False positives of all detectors on real and looping texts under random keys, end to end."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from evaluation.core.rates import Count
from evaluation.core.texts import unwatermarked
from shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)


def text_counts(schemes: list[str], texts: int, seed: int) -> Iterator[Count]:
    """`texts` texts per scheme, each under a key of its own; r = 2."""
    for scheme in schemes:
        watermark, rng = Watermark(scheme, 2), np.random.default_rng(seed)
        found: dict[tuple[str, str], list[float]] = defaultdict(list)
        for kind, tokens in unwatermarked(texts, rng):
            key = rng.bytes(16)
            found["direct", kind].append(detect_direct(watermark, key, tokens).log10_p)
            found["aligned", kind].append(detect_aligned(watermark, key, tokens).log10_p)
            found["scan", kind].append(detect_localized(watermark, key, tokens).log10_p)
        for (detector, kind), log10_p in found.items():
            hits = [int(np.count_nonzero(np.array(log10_p) <= np.log10(level))) for level in LEVELS]
            yield Count(scheme, 2, detector, kind, len(log10_p), hits)
