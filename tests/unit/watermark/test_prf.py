"""The PRF: published vectors, the slow reference, numpy against torch."""

import struct

import numpy as np
import pytest
import torch

from shared.watermark import siphash_numpy
from shared.watermark.prf import absorb_context, key_lanes, prf_words
from shared.watermark.siphash import compress, finalize, initial_lanes
from shared.watermark.siphash_numpy import CHUNK_ROWS

KEY = bytes(range(16))


def random_tokens(seed, *shape):
    return np.random.default_rng(seed).integers(0, 2**32, shape)


def test_slow_reference_gives_the_published_vectors(siphash_reference, golden):
    vectors = golden("siphash-2-4-128")
    key = bytes.fromhex(vectors["key"])
    for length, digest in enumerate(vectors["digests"]):
        assert siphash_reference(key, bytes(range(length))).hex() == digest


@pytest.mark.parametrize("backend", [np.asarray, torch.asarray], ids=["numpy", "torch"])
@pytest.mark.parametrize("width", range(1, 8))
@pytest.mark.parametrize("suffix_width", range(5))
def test_words_are_the_slow_reference_of_the_token_bytes(siphash_reference, backend, width, suffix_width):
    contexts = random_tokens(1, 3, width)
    suffix = random_tokens(2, 3, suffix_width)
    state = absorb_context(backend(key_lanes(KEY)), backend(contexts))
    words = np.asarray(prf_words(state, backend(suffix) if suffix_width else None))
    for row in range(3):
        message = struct.pack(f"<{width + suffix_width}I", *contexts[row], *suffix[row])
        assert words[row].tobytes() == siphash_reference(KEY, message)


@pytest.mark.parametrize("halves", [1, 2])
def test_fast_numpy_lanes_equal_the_generic_ones_across_chunks(halves):
    words = random_tokens(3, 3, 2 * CHUNK_ROWS + 5) << 31
    k0, k1 = random_tokens(4, 2, words.shape[1]) << 30
    lanes = initial_lanes(k0, k1)
    absorbed = compress(lanes, [*words, -5])
    assert np.array_equal(siphash_numpy.compress(lanes, [*words, -5]), absorbed)
    fast = siphash_numpy.compress_and_finalize(lanes, [*words, -5], halves)
    assert np.array_equal(fast, finalize(absorbed, halves))


def test_torch_equals_numpy_bit_for_bit_on_random_inputs():
    keys, contexts, blocks = (
        random_tokens(5, 500, 2) << 17,
        random_tokens(6, 500, 4),
        random_tokens(7, 500, 2),
    )
    in_numpy = prf_words(absorb_context(keys, contexts), blocks)
    in_torch = prf_words(absorb_context(torch.asarray(keys), torch.asarray(contexts)), torch.asarray(blocks))
    assert np.array_equal(in_numpy, in_torch.numpy())


@pytest.mark.parametrize("backend", [np.asarray, torch.asarray], ids=["numpy", "torch"])
def test_one_half_is_the_first_column_of_both(backend):
    contexts, blocks = backend(random_tokens(11, 40, 4)), backend(random_tokens(12, 40, 2))
    state = absorb_context(backend(key_lanes(KEY)), contexts)
    both, first = (np.asarray(prf_words(state, blocks, halves)) for halves in (2, 1))
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
