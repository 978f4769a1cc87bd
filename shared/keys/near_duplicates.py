"""Slows down who queries a detector with many variants of one text.

Editing a text until a detector lets it pass takes many almost identical queries. Two documents are near
duplicates when the MinHash values of their shingles agree in a band (locality-sensitive hashing; Broder
1997, Indyk and Motwani 1998). What is stored are counters named by keyed hashes: no text.
"""

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from shared.keys.counters import Counters

_SHINGLE = 4
_BANDS = 8
_ROWS = 2
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # finaliser of SplitMix64


class NearDuplicateThrottle:
    """At most `limit` variants of a document per caller, until `window_seconds` pass without one.

    Repeating exactly the same document is free: it tells the caller nothing new.
    """

    def __init__(self, counters: Counters, *, limit: int, window_seconds: float) -> None:
        self._counters = counters
        self._limit = limit
        self._window = window_seconds

    async def admit(self, caller: str, items: Sequence[int]) -> float | None:
        """None when the document is admitted, else the seconds after which to try again.

        `items` are the document's token ids, or hashes of its words.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """
        if not items:
            return None
        document = np.asarray(items, dtype=np.uint64)
        exact = self._name(caller, "all", document.tobytes())
        if (await self._counters.add({exact: 1}, lifetime_seconds=self._window))[exact] > 1:
            return None
        bands = [self._name(caller, str(band), row.tobytes()) for band, row in enumerate(minhash(document))]
        counts = await self._counters.add(dict.fromkeys(bands, 1), lifetime_seconds=self._window)
        return self._window if max(counts.values()) > self._limit else None

    @staticmethod
    def _name(caller: str, what: str, content: bytes) -> str:
        digest = hashlib.blake2b(content, digest_size=12, key=hashlib.sha256(caller.encode()).digest())
        return f"near:{caller}:{what}:{digest.hexdigest()}"


def minhash(document: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Bands of MinHash values over shingles of four items: [8, 2]."""
    width = min(_SHINGLE, len(document))
    shingles = np.zeros(len(document) - width + 1, dtype=np.uint64)
    for offset in range(width):
        shingles = _mix(shingles ^ document[offset : offset + len(shingles)])
    seeds = _mix(np.arange(1, _BANDS * _ROWS + 1, dtype=np.uint64))
    lowest = [np.min(_mix(shingles ^ seed)) for seed in seeds]
    return np.array(lowest, dtype=np.uint64).reshape(_BANDS, _ROWS)


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
