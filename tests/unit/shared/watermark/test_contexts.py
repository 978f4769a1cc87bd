"""The context rule: warm-up, repeated contexts, the detector's mirror of the generator."""

import numpy as np
import pytest

from ttmark.shared.watermark.prf import ContextTracker, occurrence_numbers, scored_positions


def slow_scored_positions(tokens, block_size, context_width, phase):
    seen, starts = set(), []
    for start in range(phase, len(tokens) - block_size + 1, block_size):
        if start < context_width:
            continue
        context = tuple(tokens[start - context_width : start])
        if context not in seen:
            starts.append(start)
        seen.add(context)
    return starts


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize("context_width", [1, 2, 3, 4, 5])
def test_detector_scores_the_blocks_that_the_generator_marks(block_size, context_width):
    rng = np.random.default_rng(0)
    for length in (0, 1, 2, 3, 5, 6, 7, 60, 61, 62):
        tokens = rng.integers(0, 3, length).tolist()
        tracker = ContextTracker(block_size, context_width)
        marked = [
            start
            for start in range(0, length - block_size + 1, block_size)
            if tracker.next_context(tokens[:start]) is not None
        ]
        assert scored_positions(tokens, block_size, context_width).tolist() == marked


@pytest.mark.parametrize("phase", [0, 1, 2])
def test_positions_equal_the_slow_reference_in_every_phase(phase):
    tokens = np.random.default_rng(phase).integers(0, 4, 200)
    for context_width in (1, 2, 3, 4):
        expected = slow_scored_positions(tokens.tolist(), 3, context_width, phase)
        assert scored_positions(tokens, 3, context_width, phase).tolist() == expected


def test_the_tracker_says_why_a_block_stays_unmarked_and_takes_no_question_inside_one():
    tracker = ContextTracker(2, 2)
    assert tracker.next_context([]) is None
    assert tracker.reason == "warm_up"
    assert tracker.next_context([5, 5]) == (5, 5)
    assert tracker.reason is None
    assert tracker.next_context([5, 5, 5, 5]) is None
    assert tracker.reason == "repeated_context"
    with pytest.raises(ValueError, match="boundary"):
        ContextTracker(2, 4).next_context([1, 2, 3])
    assert scored_positions([7] * 100, 2, 4).tolist() == [4]


def test_asking_again_after_a_preemption_gives_the_same_answer():
    tracker = ContextTracker(2, 2)
    tokens = [1, 2, 3, 4, 1, 2]
    first = [tracker.next_context(tokens[:length]) for length in (0, 2, 4, 6)]
    again = [tracker.next_context(tokens[:length]) for length in (0, 2, 4, 6)]
    assert first == again == [None, (1, 2), (3, 4), None]


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_occurrences_are_numbered_in_the_order_of_the_text(width):
    rows = np.random.default_rng(width).integers(0, 2, (300, width))
    seen: dict[tuple[int, ...], int] = {}
    for row, number in zip(rows.tolist(), occurrence_numbers(rows), strict=True):
        assert number == seen.get(tuple(row), 0)
        seen[tuple(row)] = number + 1
    assert occurrence_numbers(rows[:0]).tolist() == []
