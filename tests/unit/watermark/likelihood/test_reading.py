"""What a reader's log-probabilities become, true or not."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.likelihood.reading import Reading


@pytest.mark.parametrize("tokens", [0, 1, 3])
def test_texts_without_a_whole_block_have_no_positions(tokens: int) -> None:
    reading = Reading(np.full(tokens, -1.0))
    assert reading.of_blocks(2, 2).size == 0
    assert reading.surprise(2, 2).size == 0


def test_what_no_model_says_is_taken_for_certain() -> None:
    reading = Reading(np.array([math.nan, math.inf, -math.inf, 5.0, -1.0]))
    assert reading.clean.tolist() == [0.0, 0.0, -1000.0, 0.0, -1.0]
