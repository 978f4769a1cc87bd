"""Golden vectors: what this version of the watermark does must not change unnoticed.

The words and scores are also computed here from the specification alone, byte by byte.
"""

import math
import struct

import numpy as np
import pytest

from tests.harness.golden import golden_vectors


@pytest.fixture(scope="module")
def vectors():
    return golden_vectors()


def assert_alike(found, expected, where):
    """Equal, numbers to nine digits; lists and records member by member."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key, value in expected.items():
            assert_alike(found[key], value, f"{where}.{key}")
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for index, (left, right) in enumerate(zip(found, expected, strict=True)):
            assert_alike(left, right, f"{where}[{index}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9), where
    else:
        assert found == expected, where


def test_golden_vectors_are_reproduced(golden, vectors):
    assert_alike(vectors, golden("watermark")["watermarks"], "watermarks")


def slow_score(record, words, context_words):
    """The score of a block in the words of `docs/spec.md`, from whole numbers."""
    parameters = record["parameters"]
    if record["scheme"] == "synthid":
        depth = parameters["depth"]
        bits = [words[0] >> layer & 1 for layer in range(depth)]
        if parameters["weighted"]:
            return sum(bit * (10 * (depth - 1) - 9 * layer) for layer, bit in enumerate(bits))
        return sum(bits)
    if record["scheme"] == "dipmark":
        return sum(word >= 2**63 for word in words[: parameters["layers"]])
    if record["scheme"] == "mcmark":
        channels = parameters["channels"]
        digits_per_lane = math.floor(43 / math.log2(channels))

        def digit(lanes, layer):
            return (lanes[layer // digits_per_lane] >> 1) // channels ** (layer % digits_per_lane) % channels

        return sum(digit(words, n) == digit(context_words, n) for n in range(parameters["layers"]))
    return -math.log1p(-(words[0] >> 12) / 2**52)


def test_scores_follow_from_the_specification_alone(golden, siphash_reference):
    file = golden("watermark")
    key = bytes.fromhex(file["key"])

    def words(*tokens):
        return struct.unpack("<QQ", siphash_reference(key, struct.pack(f"<{len(tokens)}I", *tokens)))

    for record in file["watermarks"]:
        context = record["context"]
        assert words(*context) == struct.unpack("<QQ", bytes.fromhex(record["context_words"]))
        for block, score in zip(record["blocks"], record["scores"], strict=True):
            block_words = [*words(*context, *block)]
            for counter in range(1, 8):
                block_words += words(*context, *block, counter)
            assert slow_score(record, block_words, words(*context)) == pytest.approx(score, abs=1e-12)


def test_reweighted_probabilities_are_distributions_over_the_same_support(golden):
    for record in golden("watermark")["watermarks"]:
        reweighted = np.array(record["reweighted"])
        assert reweighted.sum() == pytest.approx(1.0)
        assert reweighted[-1] == 0.0
