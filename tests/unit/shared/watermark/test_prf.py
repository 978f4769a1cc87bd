"""The PRF: published vectors and the slow reference."""

import json
import struct

import numpy as np
import pytest

from tests.harness.golden import GOLDEN
from tests.harness.spec_detector.prf import siphash_2_4_128
from ttmark.shared.watermark.prf import CHUNK_ROWS, absorb_context, key_lanes, prf_words

KEY = bytes(range(16))


def random_tokens(seed, *shape):
    return np.random.default_rng(seed).integers(0, 2**32, shape)


def test_slow_reference_gives_the_published_vectors():
    vectors = json.loads((GOLDEN / "siphash-2-4-128.json").read_text())
    key = bytes.fromhex(vectors["key"])
    for length, digest in enumerate(vectors["digests"]):
        assert siphash_2_4_128(key, bytes(range(length))).hex() == digest


@pytest.mark.parametrize("width", [*range(1, 8), 40])
@pytest.mark.parametrize("suffix_width", range(5))
def test_words_are_the_slow_reference_of_the_token_bytes(width, suffix_width):
    contexts = random_tokens(1, 3, width)
    suffix = random_tokens(2, 3, suffix_width)
    state = absorb_context(key_lanes(KEY), contexts)
    words = prf_words(state, suffix if suffix_width else None)
    for row in range(3):
        message = struct.pack(f"<{width + suffix_width}I", *contexts[row], *suffix[row])
        assert words[row].tobytes() == siphash_2_4_128(KEY, message)


@pytest.mark.parametrize("halves", [1, 2])
def test_many_rows_have_the_words_of_a_few_at_a_time(halves):
    rows = 2 * CHUNK_ROWS + 5
    keys, contexts, suffix = (
        random_tokens(3, rows, 2) << 31,
        random_tokens(4, rows, 4),
        random_tokens(5, rows, 3),
    )

    def words(some, halves):
        return prf_words(absorb_context(keys[some], contexts[some]), suffix[some], halves)

    few = [words(slice(start, start + 1_000), 2)[:, :halves] for start in range(0, rows, 1_000)]
    assert np.array_equal(words(slice(None), halves), np.concatenate(few))


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
