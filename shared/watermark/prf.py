"""The keyed PRF over tokens: SipHash-2-4-128 of context || suffix, four little-endian bytes a token.

A context is absorbed once and its state is reused for every block that may follow it, so that a
candidate costs its own words and the finalisation. See `docs/spec.md`, section "PRF".
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.siphash import Lanes, Word, compress, compress_and_finalize, initial_lanes

TOKEN_BITS = 32
TOKEN_MASK = (1 << TOKEN_BITS) - 1
TOKEN_BYTES = 4
KEY_BYTES = 16


class ContextState(NamedTuple):
    """SipHash state after the whole 64-bit words of a context; one row per context."""

    lanes: Lanes  # four arrays [S]
    pending: NDArray[np.int64] | None  # [S] last token of a context of odd width, not absorbed yet
    width: int

    def take(self, rows: NDArray[np.int64]) -> "ContextState":
        """The states of the given rows, in that order."""
        v0, v1, v2, v3 = self.lanes
        pending = None if self.pending is None else self.pending[rows]
        return ContextState((v0[rows], v1[rows], v2[rows], v3[rows]), pending, self.width)


def key_lanes(prf_key: bytes) -> NDArray[np.int64]:
    """A 16-byte PRF key as its two little-endian 64-bit lanes [2].

    Raises ValueError for a key of another length.
    """
    if len(prf_key) != KEY_BYTES:
        raise ValueError(f"a PRF key has {KEY_BYTES} bytes, this one has {len(prf_key)}")
    return np.frombuffer(prf_key, dtype="<i8").astype(np.int64)


def absorb_context(keys: NDArray[np.int64], contexts: NDArray[np.int64]) -> ContextState:
    """Absorb contexts [S, H] (int64 tokens) under key lanes [2] or [S, 2]."""
    rows, width = contexts.shape
    keys = np.broadcast_to(keys, (rows, 2))
    lanes = initial_lanes(keys[:, 0], keys[:, 1])
    words = [_pack(contexts[:, i], contexts[:, i + 1]) for i in range(0, width - 1, 2)]
    pending = contexts[:, width - 1] if width % 2 else None
    return ContextState(compress(lanes, words), pending, width)


def prf_words(
    state: ContextState, suffix: NDArray[np.int64] | None = None, halves: int = 2
) -> NDArray[np.int64]:
    """PRF output of context || suffix as int64 lanes: [N, 2], or with `halves` = 1 the first alone.

    `suffix` is [N, T] int64 tokens, one row per row of the state; None is the context alone. A third of
    the work goes into the second lane.
    """
    tokens = [] if suffix is None else [suffix[:, i] for i in range(suffix.shape[1])]
    length = TOKEN_BYTES * (state.width + len(tokens))
    if state.pending is not None:
        tokens.insert(0, state.pending)
    words: list[Word] = [_pack(tokens[i], tokens[i + 1]) for i in range(0, len(tokens) - 1, 2)]
    length_word = _signed((length & 0xFF) << 56)
    words.append((tokens[-1] & TOKEN_MASK) | length_word if len(tokens) % 2 else length_word)
    return compress_and_finalize(state.lanes, words, halves)


def _pack(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    return (low & TOKEN_MASK) | (high << TOKEN_BITS)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word
