"""False positives of all detectors on real and looping texts under random keys, end to end."""

from collections import defaultdict

import numpy as np

from evaluation.core.markdown import clopper_pearson, table
from evaluation.core.texts import unwatermarked
from shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized

LEVELS = (1e-1, 1e-2, 1e-3, 1e-4)


def texts_table(schemes: list[str], texts: int, seed: int) -> str:
    """Rates over `texts` texts per scheme, each under a key of its own; r = 2."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for scheme in schemes:
        watermark, rng = Watermark(scheme, 2), np.random.default_rng(seed)
        for kind, tokens in unwatermarked(texts, rng):
            key = rng.bytes(16)
            found[scheme, "direct", kind].append(detect_direct(watermark, key, tokens).log10_p)
            found[scheme, "aligned", kind].append(detect_aligned(watermark, key, tokens).log10_p)
            found[scheme, "scan", kind].append(detect_localized(watermark, key, tokens).log10_p)
    rows = []
    for (scheme, detector, kind), log10_p in found.items():
        cells = [_cell(np.array(log10_p), level) for level in LEVELS]
        rows.append([scheme, detector, kind, f"{len(log10_p):,}", *cells])
    return table(["scheme", "detector", "text", "trials", *[f"at {level:g}" for level in LEVELS]], rows)


def _cell(log10_p: np.ndarray, level: float) -> str:
    hits = int(np.count_nonzero(log10_p <= np.log10(level)))
    low, _ = clopper_pearson(hits, log10_p.size)
    return f"{hits / log10_p.size:.2e}" + (" **above**" if low > level else "")
