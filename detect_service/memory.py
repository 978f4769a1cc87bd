"""What was said of passages before their rows were spent: found, or looked at without a finding."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.limits.row_space import Names
from ttmark.shared.limits.spent_evidence import Keepsake, short

# Rows of a memory; of a passage that has more the first count.
MOST_ROWS = 4096
_HEAD = struct.Struct("<?ddI8s")
# A passage may have been edited at so many places, by so many tokens in all, and stand as it stood.
_OFFSETS = 4
_DRIFT = 16
_LOOKS = 4


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """The rows of a document that were about to be spent when it was answered.

    Attributes:
        found: whether they are known to carry a mark, any nine tenths of them alone; else nothing was found
            in the document.
        rate: the false positive rate of the answer.
        at: when it was given, seconds since 1970.
        tokens: of the document.
        scope: 8 bytes that name the keys and options.
        names: of the rows in order [rows], 32 bits each.
        places: where in the document they stand [rows].
    """

    found: bool
    rate: float
    at: float
    tokens: int
    scope: bytes
    names: NDArray[np.uint32]
    places: NDArray[np.uint32]

    def packed(self) -> Keepsake:
        """As it is stored."""
        head = _HEAD.pack(self.found, self.rate, self.at, self.tokens, self.scope)
        packed = head + self.names.astype("<u4").tobytes() + self.places.astype("<u4").tobytes()
        return Keepsake(packed, self.names)

    @classmethod
    def opened(cls, packed: bytes) -> "Memory":
        """What was stored."""
        rows = np.frombuffer(packed[_HEAD.size :], dtype="<u4").reshape(2, -1)
        found, rate, at, tokens, scope = _HEAD.unpack_from(packed)
        return cls(found, rate, at, tokens, scope, rows[0], rows[1])

    def share_held(self, names: Names) -> float:
        """How much of the passage a document with rows of these names holds, 0 to 1."""
        return float(np.isin(self.names, short(names)).mean())

    def looks(self, names: Names, places: NDArray[np.int64]) -> Iterator[NDArray[np.bool_]]:
        """Which of a document's rows [rows] stood in the passage together as they stand now, look by look.

        Their order and their distances are the same, but for a few small edits: pieces of a passage that are
        dealt out otherwise are as many looks.
        """
        order = np.argsort(self.names, kind="stable")
        at = np.minimum(np.searchsorted(self.names[order], short(names)), self.names.size - 1)
        left: NDArray[np.bool_] = self.names[order][at] == short(names)
        offsets = self.places[order][at].astype(np.int64) - places
        for _ in range(_LOOKS):
            values, counts = np.unique(offsets[left], return_counts=True)
            if not values.size:
                return
            near = np.abs(values - values[np.argmax(counts)]) <= _DRIFT
            kept = values[near][np.argsort(-counts[near], kind="stable")[:_OFFSETS]]
            look = left & np.isin(offsets, kept)
            yield look
            left &= ~look
