"""One question to the likelihood ratio."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.likelihood.evidence import LikelihoodEvidence, LikelihoodTest
from ttmark.shared.watermark.schemes.watermark import Watermark


def detect_likelihood(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    tokens: Sequence[int] | NDArray[np.int64],
    *,
    rate: float = 1e-5,
    **options: Any,
) -> LikelihoodEvidence:
    """Tests a text for the mark of any of the keys at a rate; see `LikelihoodTest` for the options."""
    return LikelihoodTest(watermark, tokens, rate=rate / len(prf_keys), **options).under(prf_keys)
