"""What a reader's log-probabilities become, true or not."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.likelihood.reading import Reading


def test_a_block_is_as_likely_as_its_tokens_together() -> None:
    reading = Reading(np.array([-9.0, -1.0, -2.0, -3.0, -4.0]))
    assert reading.of_blocks(2, 2).tolist() == [-5.0, -7.0]
    assert reading.of_blocks(2, 1).tolist() == [-2.0, -3.0, -4.0]


def surprise(*bits: float) -> list[float]:
    return Reading(-np.array(bits) * math.log(2)).surprise(2, 2).tolist()


def test_surprise_is_that_of_the_most_surprising_token_and_half_of_the_next_one_counts() -> None:
    assert surprise(30, 1, 1, 1, 1, 16, 0) == pytest.approx([0.97, 0.0, 0.6, 0.6], abs=2e-4)
    assert surprise(1, 1, 1, 11, 6) == pytest.approx([0.36, 0.36], abs=2e-4)
    assert surprise(1, 1, 1, 6, 9) == [0.0, 0.0]
    assert surprise(1, 1, 1, 10.9) == [0.0]


@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_texts_without_a_whole_block_have_no_positions(tokens: int) -> None:
    reading = Reading(np.full(tokens, -1.0))
    assert reading.of_blocks(2, 2).size == 0
    assert reading.surprise(2, 2).size == 0


def test_what_no_model_says_is_taken_for_certain() -> None:
    reading = Reading(np.array([math.nan, math.inf, -math.inf, 5.0, -1.0]))
    assert reading.clean.tolist() == [0.0, 0.0, -1000.0, 0.0, -1.0]
