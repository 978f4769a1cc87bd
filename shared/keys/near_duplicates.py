"""Slows down who queries a detector with many variants of one text.

Editing a text until a detector lets it pass takes many almost identical queries. Two documents are near
duplicates when the MinHash values of their shingles agree in a band (locality-sensitive hashing; Broder
1997, Indyk and Motwani 1998). What is stored are counters named by keyed hashes of bands: no text, and
nothing that a reader of the store could compare with a text of its own.
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shared.keys.confidential import Confidential
from shared.keys.counters import Counters

_TOKENS_IN_A_SHINGLE = 4
_CHARACTERS_IN_A_SHINGLE = 12  # of text, so that it makes no difference where a script puts spaces
_BANDS = 4
_ROWS = 2
_RANGE_BITS = 3  # of four times two
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # finaliser of SplitMix64


@dataclass(frozen=True, slots=True)
class Sketch:
    """What the throttle looks at of a document: a digest of the whole, and one of each band."""

    whole: bytes
    bands: tuple[bytes, ...]


def sketch_text(text: str) -> Sketch:
    """The sketch of a text, which may hold any character but lone surrogates."""
    return _sketch(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32), _CHARACTERS_IN_A_SHINGLE)


def sketch_tokens(token_ids: Sequence[int]) -> Sketch:
    """The sketch of a document that came as token ids."""
    return _sketch(np.asarray(token_ids, dtype=np.uint64), _TOKENS_IN_A_SHINGLE)


def _sketch(items: NDArray[np.uint32] | NDArray[np.uint64], width: int) -> Sketch:
    whole = hashlib.blake2b(items.tobytes(), digest_size=16).digest()
    return Sketch(whole, tuple(band.tobytes() for band in minhash(items.astype(np.uint64), width)))


class NearDuplicateThrottle(Confidential):
    """At most `limit` variants of a document per caller, until `window_seconds` pass without one.

    Repeating exactly the same document is free: it tells the caller nothing new.

    Args:
        key: names the counters; the same in all replicas, unknown to readers of the store.
    """

    def __init__(self, counters: Counters, *, key: bytes, limit: int, window_seconds: float) -> None:
        if limit < 1 or window_seconds <= 0:
            raise ValueError("a throttle needs a positive limit and window")
        self._counters = counters
        self._key = key
        self._limit = limit
        self._window = window_seconds

    async def admit(self, caller: str, documents: Sequence[Sketch]) -> float | None:
        """None when the documents of a request are admitted, else the seconds after which to try again.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """
        names = {document: self._bands(caller, document) for document in documents}
        counts = await self._add(Counter(name for bands in names.values() for name in bands))
        # Whole documents are remembered only once there are many alike: else each would be one more counter.
        suspects = [document for document, bands in names.items() if _most(bands, counts) > self._limit // 2]
        if not suspects:
            return None
        wholes = {document: self._name(caller, b"whole", document.whole) for document in suspects}
        seen = await self._add(dict.fromkeys(wholes.values(), 0))
        known = [document for document in suspects if seen[wholes[document]] > 0]
        refused = any(
            _most(names[document], counts) > self._limit for document in suspects if document not in known
        )
        changes = Counter(name for document in known for name in names[document])
        changes = Counter({name: -count for name, count in changes.items()})
        if not refused:
            # Not before it is admitted: of a refused document the repetition must be refused, too.
            changes.update(wholes[document] for document in suspects if document not in known)
        if changes:
            await self._add(changes)
        return self._window if refused else None

    async def _add(self, amounts: dict[str, int]) -> dict[str, int]:
        return await self._counters.add(amounts, lifetime_seconds=self._window) if amounts else {}

    def _bands(self, caller: str, document: Sketch) -> set[str]:
        return {self._name(caller, b"%d" % number, band) for number, band in enumerate(document.bands)}

    def _name(self, caller: str, what: bytes, content: bytes) -> str:
        digest = hashlib.blake2b(what + b":" + content, digest_size=12, key=self._key, person=b"ttmark near")
        return f"near:{caller}:{digest.hexdigest()}"


def _most(names: set[str], counts: dict[str, int]) -> int:
    return max((counts[name] for name in names), default=0)


def minhash(items: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
    """Bands of MinHash values over shingles of `width` items: [4, 2]; [0, 2] without items."""
    if not len(items):
        return np.zeros((0, _ROWS), dtype=np.uint64)
    shingles = np.sort(_mix(_polynomials(items, min(width, len(items)))))
    # The least of each of eight ranges: one permutation for all rows (Li, Owen and Zhang 2012). A range
    # without a shingle takes the next one's (Shrivastava and Li 2014).
    ranges = np.arange(_BANDS * _ROWS, dtype=np.uint64) << np.uint64(64 - _RANGE_BITS)
    least: NDArray[np.uint64] = shingles[np.searchsorted(shingles, ranges) % len(shingles)]
    return least.reshape(_BANDS, _ROWS)


def _polynomials(items: NDArray[np.uint64], width: int) -> NDArray[np.uint64]:
    """Each run of `width` items as a polynomial's value; runs of 12 are made of runs of 4 and 8."""
    values, size = items, 1  # of runs of `size`
    done, covered = None, 0  # of runs of `covered`, for the binary digits of `width` so far
    while True:
        if width & size:
            done = values if done is None else _joined(done, values, covered, size)
            covered += size
        if covered == width and done is not None:
            return done[: len(items) - width + 1]
        values, size = _joined(values, values, size, size), 2 * size


def _joined(
    head: NDArray[np.uint64], tail: NDArray[np.uint64], head_size: int, tail_size: int
) -> NDArray[np.uint64]:
    """Polynomials of runs that are a run of `head_size` items and then one of `tail_size`."""
    count = min(len(head), len(tail) - head_size)
    shift = np.uint64(pow(_MIX[0], tail_size, 1 << 64))
    joined: NDArray[np.uint64] = head[:count] * shift
    joined += tail[head_size : head_size + count]
    return joined


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed
