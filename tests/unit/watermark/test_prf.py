"""The PRF: published vectors and the slow reference."""

import struct

import numpy as np
import pytest

from ttmark.shared.watermark import prf
from ttmark.shared.watermark.prf import (
    CHUNK_ROWS,
    COMPRESSION_ROUNDS,
    FINALIZATION_ROUNDS,
    absorb_context,
    initial_lanes,
    key_lanes,
    prf_words,
)

KEY = bytes(range(16))


def random_tokens(seed, *shape):
    return np.random.default_rng(seed).integers(0, 2**32, shape)


def test_slow_reference_gives_the_published_vectors(siphash_reference, golden):
    vectors = golden("siphash-2-4-128")
    key = bytes.fromhex(vectors["key"])
    for length, digest in enumerate(vectors["digests"]):
        assert siphash_reference(key, bytes(range(length))).hex() == digest


@pytest.mark.parametrize("width", range(1, 8))
@pytest.mark.parametrize("suffix_width", range(5))
def test_words_are_the_slow_reference_of_the_token_bytes(siphash_reference, width, suffix_width):
    contexts = random_tokens(1, 3, width)
    suffix = random_tokens(2, 3, suffix_width)
    state = absorb_context(key_lanes(KEY), contexts)
    words = prf_words(state, suffix if suffix_width else None)
    for row in range(3):
        message = struct.pack(f"<{width + suffix_width}I", *contexts[row], *suffix[row])
        assert words[row].tobytes() == siphash_reference(KEY, message)


def compress(lanes, words):
    """SipHash as its authors write it: one array operation for each of theirs."""
    for word in words:
        v0, v1, v2, v3 = lanes
        v0, v1, v2, v3 = rounds((v0, v1, v2, v3 ^ word), COMPRESSION_ROUNDS)
        lanes = (v0 ^ word, v1, v2, v3)
    return lanes


def finalize(lanes, halves):
    v0, v1, v2, v3 = lanes
    v0, v1, v2, v3 = rounds((v0, v1, v2 ^ 0xEE, v3), FINALIZATION_ROUNDS)
    out = [v0 ^ v1 ^ v2 ^ v3]
    if halves == 2:
        v0, v1, v2, v3 = rounds((v0, v1 ^ 0xDD, v2, v3), FINALIZATION_ROUNDS)
        out.append(v0 ^ v1 ^ v2 ^ v3)
    return np.stack(out, axis=1)


def rounds(lanes, count):
    v0, v1, v2, v3 = lanes
    for _ in range(count):
        v0 = v0 + v1
        v1 = rotate_left(v1, 13) ^ v0
        v0 = rotate_left(v0, 32)
        v2 = v2 + v3
        v3 = rotate_left(v3, 16) ^ v2
        v0 = v0 + v3
        v3 = rotate_left(v3, 21) ^ v0
        v2 = v2 + v1
        v1 = rotate_left(v1, 17) ^ v2
        v2 = rotate_left(v2, 32)
    return v0, v1, v2, v3


def rotate_left(lane, bits):
    return (lane << bits) | ((lane >> (64 - bits)) & ((1 << bits) - 1))


@pytest.mark.parametrize("halves", [1, 2])
def test_lanes_in_chunks_equal_the_plain_ones(halves):
    words = random_tokens(3, 3, 2 * CHUNK_ROWS + 5) << 31
    k0, k1 = random_tokens(4, 2, words.shape[1]) << 30
    lanes = initial_lanes(k0, k1)
    absorbed = compress(lanes, [*words, -5])
    assert np.array_equal(prf.compress(lanes, [*words, -5]), absorbed)
    fast = prf.compress_and_finalize(lanes, [*words, -5], halves)
    assert np.array_equal(fast, finalize(absorbed, halves))


def test_one_half_is_the_first_column_of_both():
    contexts, blocks = random_tokens(11, 40, 4), random_tokens(12, 40, 2)
    state = absorb_context(key_lanes(KEY), contexts)
    both, first = (prf_words(state, blocks, halves) for halves in (2, 1))
    assert np.array_equal(first, both[:, :1])


def test_a_state_is_reused_for_all_candidates_of_its_context():
    contexts, blocks = random_tokens(8, 2, 3), random_tokens(9, 5, 2)
    rows = np.array([0, 0, 1, 1, 1])
    reused = prf_words(absorb_context(key_lanes(KEY), contexts).take(rows), blocks)
    assert np.array_equal(reused, prf_words(absorb_context(key_lanes(KEY), contexts[rows]), blocks))


def test_filler_minus_one_means_the_largest_token():
    contexts = random_tokens(10, 1, 4)
    state = absorb_context(key_lanes(KEY), contexts)
    short, filled = np.array([[7, -1]]), np.array([[7, 2**32 - 1]])
    assert np.array_equal(prf_words(state, short), prf_words(state, filled))


def test_no_rows_give_no_words():
    state = absorb_context(key_lanes(KEY), np.empty((0, 4), np.int64))
    assert prf_words(state, np.empty((0, 2), np.int64)).shape == (0, 2)


def test_key_of_another_length_is_refused():
    with pytest.raises(ValueError, match="16 bytes"):
        key_lanes(b"short")
