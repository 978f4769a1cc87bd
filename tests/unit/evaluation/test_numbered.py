"""Numbered repeats: generator and detector agree, and no PRF output is used twice."""

from collections import Counter

import numpy as np
import pytest

from tests.unit.evaluation.conftest import ZipfSource
from ttmark.evaluation.cells import Cell, SamplingSetting
from ttmark.evaluation.numbered import (
    WINDOW,
    NumberedTracker,
    NumberedWatermark,
    context_numbers,
    numbered_direct,
    numbered_position_scores,
    numbered_rows,
)
from ttmark.shared.watermark import Watermark, detect_direct
from ttmark.shared.watermark.detectors.positions import position_scores

SETTING = SamplingSetting(50, 0.95, 1.0)
TEXT = np.random.default_rng(3).integers(0, 4, size=400)


@pytest.mark.parametrize("width", [1, 2, 4])
def test_numbers_are_those_of_counting_by_hand(width: int) -> None:
    tokens = TEXT.tolist()
    slow = [
        sum(
            tokens[other - width : other] == tokens[end - width : end]
            for other in range(max(width, end - WINDOW), end)
        )
        for end in range(width, len(tokens))
    ]
    assert context_numbers(TEXT, width).tolist() == slow


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("width", [1, 2, 3])
def test_the_detector_scores_the_blocks_that_the_generator_marks(size: int, width: int) -> None:
    tracker, tokens = NumberedTracker(size, width), TEXT.tolist()
    contexts, _ = numbered_rows(Watermark("gumbel", size, width), TEXT)
    marked = []
    for end in range(0, len(tokens) - size + 1, size):
        context = tracker.next_context(tokens[:end])
        assert context == tracker.next_context(tokens[:end])
        if context is not None:
            assert context == tuple(contexts[end - width].tolist())
            marked.append(context)
    assert max(Counter(marked).values()) == 1
    assert numbered_direct(Watermark("gumbel", size, width), bytes(16), TEXT)[1] == len(marked)


def test_a_numbered_text_is_found_and_more_of_it_is_scored() -> None:
    source, texts = ZipfSource(), []
    cells = [
        Cell("gumbel", 2, SETTING, 300, context_width=1, numbered=numbered) for numbered in (False, True)
    ]
    for cell in cells:
        source.generate(cell, [0], 0, texts.append)
    skipping, numbered = (np.array(text.token_ids) for text in texts)
    log10_p, scored = numbered_direct(cells[1].watermark(), cells[1].key(0, 0), numbered)
    alone = detect_direct(cells[0].watermark(), cells[0].key(0, 0), skipping)
    assert isinstance(cells[1].watermark(), NumberedWatermark)
    assert scored > 2 * alone.scored_blocks
    assert log10_p < alone.log10_p < -5
    assert numbered_position_scores(cells[1].watermark(), cells[1].key(0, 0), numbered)[::2].mean() < 1.5


def test_without_a_watermark_scores_have_mean_0_and_deviation_1() -> None:
    watermark, generator = Watermark("gumbel", 2, 1), np.random.default_rng(5)
    scores = np.concatenate(
        [numbered_position_scores(watermark, generator.bytes(16), TEXT) for _ in range(40)]
    )
    assert abs(scores.mean()) < 4 / np.sqrt(scores.size)
    assert abs(scores.std() - 1) < 0.05
    assert scores.size == 40 * position_scores(watermark, bytes(16), TEXT).size
