"""The keyed PRF over tokens, and which contexts it is keyed by.

The PRF is SipHash-2-4-128 (Aumasson and Bernstein 2012; reference code, 128-bit output) of context || suffix,
four little-endian bytes a token. One output serves all layers of a scheme, as a step has up to 2,500
candidate blocks; short or linear generators in its place let a key be recovered from text. A context is
absorbed once and its state is reused for every block that may follow it, so that a candidate costs its own
words and the finalisation. See `docs/spec.md`, section "PRF".

Unsigned lanes are updated in place, in chunks that stay in cache. The two halves of a round are alike, so
lanes are worked on in twos: half as many array operations. On the few hundred blocks of a usual text the
number of operations counts, so every operand is contiguous and as large as the other.

A block is keyed by the H tokens before it, each context once. Direct detection (`scored_positions`) follows
the generator's rule (`ContextTracker`); see `docs/spec.md`, section "Contexts". The other detectors score
blocks wherever they may begin, and treat what stands in a text again by rules of their own (sections "Rows"
and "Three modes").
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
UInt64 = NDArray[np.uint64]
Lanes = tuple[Int64, Int64, Int64, Int64]
"""The four 64-bit words of SipHash state, one element per message."""
Word = Int64 | int

INITIAL = (0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573)
FIRST_HALF, SECOND_HALF = 0xEE, 0xDD
COMPRESSION_ROUNDS, FINALIZATION_ROUNDS = 2, 4

# Rows worked on at once: lanes, scratch and numbers of bits are twenty lanes of 64 KiB.
CHUNK_ROWS = 8192

# Bits by which (v1, v3) are rotated left in the first and in the second half of a round.
_TURNS = ((13, 16), (17, 21))
# An array without dimensions costs less to convert than a number.
_HALF_WORD = np.array(32, dtype=np.uint64)
_ROUNDS_WITHOUT_COPY = 2


def initial_lanes(k0: Int64, k1: Int64) -> Lanes:
    """The state before the first message word, for key lanes `k0` and `k1` of the same shape."""
    c0, c1, c2, c3 = INITIAL
    return k0 ^ c0, k1 ^ c1, k0 ^ c2, k1 ^ c3


def compress(lanes: Lanes, words: Sequence[Word]) -> Lanes:
    """New lanes [N] after absorbing 64-bit message words: arrays [N], or one signed number for all rows.

    The inputs are kept.
    """
    v0, v1, v2, v3 = (np.empty_like(lane) for lane in lanes)
    for chunk in _chunks(v0.shape[0]):
        state = _Chunk(lanes, chunk)
        state.absorb(words, chunk)
        v0[chunk], v2[chunk] = state.even.view(np.int64)
        v1[chunk], v3[chunk] = state.odd.view(np.int64)
    return v0, v1, v2, v3


def compress_and_finalize(lanes: Lanes, words: Sequence[Word], halves: int) -> NDArray[np.int64]:
    """Absorb `words` into lanes [N] each and finalise: the first `halves` (1, 2) lanes of the output.

    [N, halves] int64, columns contiguous. The inputs are kept.
    """
    rows = lanes[0].shape[0]
    out = np.empty((halves, rows), dtype=np.uint64)
    for chunk in _chunks(rows):
        state = _Chunk(lanes, chunk)
        state.absorb(words, chunk)
        state.finalize(out[:, chunk])
    return out.view(np.int64).T


class _Chunk:
    """The state of some rows: lanes (v0, v2) and (v1, v3), and scratch.

    Each half of a round leaves one of the even lanes where it is and writes the other, rotated, behind it: so
    they change places, as the next half wants them, without a copy.
    """

    def __init__(self, lanes: Lanes, chunk: slice) -> None:
        v0, v1, v2, v3 = (lane[chunk].view(np.uint64) for lane in lanes)
        rows = v0.shape[0]
        self._evens = np.empty((2 + 2 * _ROUNDS_WITHOUT_COPY, rows), dtype=np.uint64)
        self._pairs = [self._evens[i : i + 2] for i in range(1 + 2 * _ROUNDS_WITHOUT_COPY)]
        self.even, self.odd = self._pairs[0], np.empty((2, rows), dtype=np.uint64)  # [2, rows]
        self.even[0], self.even[1], self.odd[0], self.odd[1] = v0, v2, v1, v3
        self._scratch = np.empty_like(self.even)
        self._turns = _turns(rows)

    def absorb(self, words: Sequence[Word], chunk: slice) -> None:
        for word in words:
            part = np.uint64(word % (1 << 64)) if isinstance(word, int) else word[chunk].view(np.uint64)
            self.odd[1] ^= part
            self._rounds(COMPRESSION_ROUNDS)
            self.even[0] ^= part

    def finalize(self, out: UInt64) -> None:
        """Fill `out` [1 or 2, rows]."""
        self.even[1] ^= np.uint64(FIRST_HALF)
        for half in out:
            self._rounds(FINALIZATION_ROUNDS)
            np.bitwise_xor(self.even, self.odd, self._scratch)
            np.bitwise_xor(self._scratch[0], self._scratch[1], half)
            self.odd[0] ^= np.uint64(SECOND_HALF)

    def _rounds(self, count: int) -> None:
        for _ in range(0, count, _ROUNDS_WITHOUT_COPY):
            for half in range(2 * _ROUNDS_WITHOUT_COPY):
                self._half_round(half)
            self.even[:] = self._pairs[-1]

    def _half_round(self, half: int) -> None:
        """Add, rotate, xor; then the first even lane goes behind the second, rotated by half a word."""
        even, odd, scratch, (left, right) = self._pairs[half], self.odd, self._scratch, self._turns[half % 2]
        np.add(even, odd, even)
        np.right_shift(odd, right, scratch)
        np.left_shift(odd, left, odd)
        np.bitwise_or(odd, scratch, odd)
        np.bitwise_xor(odd, even, odd)
        first, rotated, spare = even[0], self._pairs[half + 1][1], scratch[0]
        np.right_shift(first, _HALF_WORD, spare)
        np.left_shift(first, _HALF_WORD, rotated)
        np.bitwise_or(rotated, spare, rotated)


@lru_cache(maxsize=8)
def _turns(rows: int) -> tuple[tuple[UInt64, UInt64], ...]:
    """For each half of a round by how many bits (v1, v3) [2, rows] go to the left, and what that leaves."""
    left = np.repeat(np.array(_TURNS, dtype=np.uint64), rows, axis=1).reshape(2, 2, rows)
    return tuple(zip(left, np.uint64(64) - left, strict=True))


def _chunks(rows: int) -> Iterator[slice]:
    for start in range(0, rows, CHUNK_ROWS):
        yield slice(start, min(start + CHUNK_ROWS, rows))


TOKEN_BITS = 32
TOKEN_MASK = (1 << TOKEN_BITS) - 1
UNKNOWN_TOKEN = TOKEN_MASK - 1
"""Stands where a text has lost a character: no vocabulary reaches as far."""
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


Reason = Literal["warm_up", "repeated_context"]


def warmup_blocks(block_size: int, context_width: int) -> int:
    """Blocks at the start of a completion that have no full context: ceil(H / r)."""
    return -(-context_width // block_size)


class ContextTracker:
    """The context rule on the generation side; one tracker per completion."""

    def __init__(self, block_size: int, context_width: int) -> None:
        self.reason: Reason | None = None
        """Why the last `next_context` gave None."""
        self._block_size = block_size
        self._context_width = context_width
        self._first_use: dict[tuple[int, ...], int] = {}

    def next_context(self, tokens: Sequence[int]) -> tuple[int, ...] | None:
        """The context that keys the block after `tokens`, or None for a block without watermark.

        `tokens` is the completion so far and ends at a block boundary. Asking again for the same
        completion gives the same answer. Raises ValueError inside a block.
        """
        length = len(tokens)
        if length % self._block_size:
            raise ValueError(f"{length} tokens do not end at a boundary of blocks of {self._block_size}")
        if length < self._context_width:
            self.reason = "warm_up"
            return None
        context = tuple(tokens[length - self._context_width :])
        if self._first_use.get(context, length) < length:
            self.reason = "repeated_context"
            return None
        self._first_use[context] = length
        self.reason = None
        return context


def scored_positions(
    tokens: Sequence[int] | NDArray[np.int64], block_size: int, context_width: int, phase: int = 0
) -> NDArray[np.int64]:
    """Starts of the blocks that direct detection scores: complete, after the warm-up, contexts new.

    `phase` is the offset of the block boundaries, 0 <= phase < block_size. Of blocks with equal
    contexts the first alone is scored.
    """
    tokens = np.asarray(tokens, dtype=np.int64)
    first = phase + block_size * max(0, -(-(context_width - phase) // block_size))
    starts = np.arange(first, tokens.size - block_size + 1, block_size)
    if starts.size == 0:
        return starts
    contexts = windows(tokens, starts - context_width, context_width)
    scored: NDArray[np.int64] = starts[first_occurrences(contexts)]
    return scored


def windows(tokens: NDArray[np.int64], starts: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """The `width` tokens from each of `starts` [N] on -> [N, width]."""
    rows: NDArray[np.int64] = tokens[starts[:, None] + np.arange(width)]
    return rows


def first_occurrences(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending numbers of the rows [N, T] that equal no earlier one; quicker for a text than sorting."""
    keys = rows.view(f"V{rows.itemsize * rows.shape[1]}").ravel().tolist()
    first = dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))
    return np.array(sorted(first.values()), dtype=np.int64)


def occurrence_numbers(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many earlier rows equal each row of token matrix `rows` [N, T] -> [N], 0 for a first one."""
    count, width = rows.shape
    packed = [rows[:, i] | (rows[:, i + 1] << TOKEN_BITS) for i in range(0, width - 1, 2)]
    if width % 2:
        packed.append(rows[:, -1])
    order = np.lexsort(packed)  # stable: equal rows keep their order
    is_first = np.zeros(count, dtype=np.bool_)
    is_first[:1] = True
    for column in packed:
        ordered = column[order]
        is_first[1:] |= ordered[1:] != ordered[:-1]
    ranks = np.arange(count)
    numbers = np.empty(count, dtype=np.int64)
    numbers[order] = ranks - np.maximum.accumulate(np.where(is_first, ranks, 0))
    return numbers
