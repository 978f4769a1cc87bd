"""The rows of a document that a detector may score: what is counted, and what is drawn once it is spent.

A row is what a score depends on: a context with its block, or with another system's token. Direct detection
scores some of them, alignment and passages every one, numbered where it repeats: all that they score is here.

Also here, what was said of passages before their rows were spent: found, or looked at without a finding.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.document_reader import DocumentReader
from ttmark.shared.keys.records import ForeignKey, HeldKey, UnlockedKey
from ttmark.shared.limits.row_space import SPENT, Names, States
from ttmark.shared.limits.spent_evidence import Keepsake, mixed, short
from ttmark.shared.watermark.foreign import ForeignMark
from ttmark.shared.watermark.pauses import pause
from ttmark.shared.watermark.prf import key_lanes
from ttmark.shared.watermark.redrawn import Redrawn

_FACTOR = np.uint64(0xD6E8FEB86659FD93)


class DocumentRows:
    """Of all readings of one document, under all keys that are tried.

    Args:
        readers: the readings.
        seed: 64 secret bits that name rows.

    Attributes:
        names: of the rows, each once [rows].
    """

    def __init__(self, readers: Sequence[DocumentReader], keys: Sequence[HeldKey], seed: int) -> None:
        self.readers = readers
        self._seed = seed
        self._of: dict[tuple[int, str, int], Names] = {}
        for key in keys:
            for index in range(len(readers)):
                for tokens in _row_tokens(key):
                    self._named(index, key, tokens)
        self.names: Names = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._of.values()]))

    def _named(self, index: int, key: HeldKey, row_tokens: int) -> Names:
        """Names of the rows that end at each token [L]; before the first token stands nothing."""
        name = (index, key.profile.tokenizer_fingerprint, row_tokens)
        if name not in self._of:
            pause()
            tokens = self.readers[index].token_ids(key)
            padded = np.concatenate([np.full(row_tokens - 1, -1), tokens]).astype(np.uint64)
            names = np.full(tokens.size, (self._seed ^ row_tokens) & (1 << 64) - 1, dtype=np.uint64)
            for offset in range(row_tokens):
                names = mixed(names * _FACTOR ^ padded[offset : offset + tokens.size])
            self._of[name] = names
        return self._of[name]

    def of_key(self, index: int, key: UnlockedKey) -> Names:
        """The rows that the key's detectors score in a reading, from token H on [L - H - r + 1]."""
        width = _row_tokens(key)[0]
        return self._named(index, key, width)[width - 1 :]

    def states_of(self, states: States, names: Names) -> States:
        """The states of some rows, from those of all [rows]."""
        if not self.names.size:
            return np.zeros(names.size, dtype=np.uint8)
        found: States = states[np.searchsorted(self.names, names)]
        return found

    def redrawn(self, states: States, seed: bytes, key: UnlockedKey) -> list[Redrawn | None]:
        """What of each reading is drawn from the null, by the question's own seed of 16 bytes."""
        drawn: list[Redrawn | None] = []
        for index in range(len(self.readers)):
            rows = self.states_of(states, self.of_key(index, key)) >= SPENT
            drawn.append(Redrawn(rows, key_lanes(seed)) if rows.any() else None)
        return drawn

    def spent_tokens(
        self, states: States, reader: DocumentReader, key: ForeignKey, mark: ForeignMark
    ) -> NDArray[np.bool_]:
        """Tokens whose score under a foreign mark is spent [L]."""
        names = self._named(self.readers.index(reader), key, mark.row_tokens)
        return self.states_of(states, names) >= SPENT


def _row_tokens(key: HeldKey) -> list[int]:
    """Tokens in a row, for each kind of row that the key's detectors score."""
    if isinstance(key, ForeignKey):
        return list(dict.fromkeys(version.mark.row_tokens for version in key.detectable))
    return [key.profile.context_width + key.profile.block_size]


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
