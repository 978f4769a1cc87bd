"""The random numbers of one request: a function of its seed and of the position, never of what else runs."""

import hashlib
import struct
from enum import IntEnum

_PERSON = b"ttmark.draws.v1"
_MASK_128 = (1 << 128) - 1


class Draw(IntEnum):
    """What a random number decides; numbers of different purposes are independent."""

    TOKEN = 0
    BLOCK = 1
    HEAD_OR_TAIL = 2
    TAIL = 3
    TAIL_TOKEN = 4


class Draws:
    """Counter-based uniforms: keyed BLAKE2b of (position, purpose, level).

    A draw depends on nothing but the seed and its own counters, so a request gives the same text in any
    batch and after any preemption (given equal logits).
    """

    def __init__(self, seed: int) -> None:
        self._key = (seed & _MASK_128).to_bytes(16, "little")

    def uniform(self, position: int, purpose: Draw, level: int = 0) -> float:
        """A number in [0, 1) with 53 random bits.

        Args:
            position: number of completion tokens before the one, or the block, that is drawn.
            level: depth inside the block, for draws that happen once per level.
        """
        counter = struct.pack("<QII", position, purpose, level)
        digest = hashlib.blake2b(counter, digest_size=8, key=self._key, person=_PERSON).digest()
        return float(int.from_bytes(digest, "little") >> 11) * 2.0**-53
