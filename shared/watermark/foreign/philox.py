"""Philox4x32-10 (Salmon et al. 2011, https://doi.org/10.1145/2063384.2063405) on arrays of 32-bit words."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
"""32-bit words, each in the low half of 64 bits."""
Block = tuple[Words, Words, Words, Words]

MASK: Final = np.uint64(0xFFFFFFFF)
_HALF: Final = np.uint64(32)
_ROUNDS: Final = 10
_MULTIPLIERS: Final = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL: Final = (np.uint64(0x9E3779B9), np.uint64(0xBB67AE85))


def philox(counter: Block, key: tuple[Words, Words]) -> Block:
    """Encrypts counters, four arrays [...] of words, under keys, two of the same shape."""
    first, second, third, fourth = counter
    low_key, high_key = key
    for _ in range(_ROUNDS):
        left, right = _MULTIPLIERS[0] * first, _MULTIPLIERS[1] * third
        first, third = (right >> _HALF) ^ second ^ low_key, (left >> _HALF) ^ fourth ^ high_key
        second, fourth = right & MASK, left & MASK
        low_key, high_key = (low_key + _WEYL[0]) & MASK, (high_key + _WEYL[1]) & MASK
    return first, second, third, fourth
