"""Decoys: what a statistic would have been under other keys.

The scores of a text under a random key are independent draws from the scheme's null, so decoys are
drawn instead of hashed. The generator is keyed by text and PRF key: every replica gives the same answer.
"""

import hashlib
import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.pauses import pause
from ttmark.shared.watermark.watermark import Watermark

DECOYS = 1000
# Positions drawn at once: 256 x 1000 words are 2 MiB.
CHUNK_POSITIONS = 256


def decoy_scores(
    watermark: Watermark, prf_key: bytes, tokens: NDArray[np.int64], positions: int
) -> Iterator[NDArray[np.float64]]:
    """Standardised scores [chunk, DECOYS] of all `positions`, chunk after chunk."""
    digest = hashlib.blake2b(tokens.astype("<i8").tobytes(), key=prf_key, digest_size=16).digest()
    # Raw words, because their stream is fixed for all numpy versions and that of distributions is not.
    generator = np.random.Philox(key=np.frombuffer(digest, dtype="<u8"))
    for start in range(0, positions, CHUNK_POSITIONS):
        pause()
        rows = min(CHUNK_POSITIONS, positions - start)
        words = generator.random_raw(rows * DECOYS).reshape(rows, DECOYS)
        yield watermark.standardize(watermark.null.draw(words))


def decoy_log10_p(observed: float, decoys: NDArray[np.float64]) -> float:
    """log10 of (1 + #{decoys >= observed}) / (K + 1), exact for any statistic."""
    # Sums of equal scores in another order differ by rounding; such a tie counts for the decoy.
    reached = int(np.count_nonzero(decoys >= observed - 1e-9))
    return math.log10((1 + reached) / (1 + decoys.size))
