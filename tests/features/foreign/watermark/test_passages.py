"""Windows, and what they find of a foreign mark."""

import math

import numpy as np
import pytest

from ttmark.shared.watermark.foreign import ForeignMark, Kgw, SglangGumbel, SynthIdText, VllmGumbel
from ttmark.shared.watermark.foreign.foreign_mark import (
    ForeignEvidence,
    ForeignPassage,
    grid,
    passages,
    reported,
    window_count,
)

MARKS = (VllmGumbel(5), VllmGumbel(5, alpha=0.3), SglangGumbel(5), Kgw(300, 7), SynthIdText(tuple(range(9))))


@pytest.mark.parametrize("length", [0, 1, 31, 32, 33, 47, 48, 64, 65, 300, 1025])
def test_the_grid_covers_a_text_and_is_counted(length: int) -> None:
    windows = list(grid(length))
    assert len(windows) == len(set(windows)) == window_count(length)
    assert all(0 <= start < end <= length for start, end in windows)
    if length:
        assert (0, length) in windows
        assert {place for start, end in windows[:-1] or windows for place in range(start, end)} == set(
            range(length)
        )


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: type(mark).__name__)
def test_a_window_is_what_its_scored_tokens_say(mark: ForeignMark) -> None:
    tokens = np.random.default_rng(1).integers(0, 300, 100)
    text = mark.read(tokens)
    whole = text.evidence(0, text.positions.size)
    windows = passages(text, tokens.size)
    assert len(windows) == window_count(100)
    (widest,) = (one for one in windows if (one.start, one.end) == (0, 100))
    assert widest.evidence == whole == mark.detect(tokens)
    assert widest.log10_e == pytest.approx(whole.log10_p + math.log10(window_count(100)))
    assert [one.log10_e for one in windows] == sorted(one.log10_e for one in windows)
    assert mark.read(tokens[:0]).positions.size == 0


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: type(mark).__name__)
def test_the_best_possible_text_reaches_a_p_value_at_the_length_that_is_needed(mark: ForeignMark) -> None:
    """Greedy: no text of fewer tokens is better than the best token at each step."""
    needed = mark.tokens_needed(-3.0)
    written = np.zeros(0, dtype=np.int64)
    while written.size < needed:
        tried = [np.append(written, token) for token in range(0, 300, 6)]
        written = min(tried, key=lambda one: mark.detect(one).log10_p)
    assert mark.detect(written[: needed - 1]).log10_p > -3.0 or needed == 1


def test_passages_that_touch_are_one_and_worse_ones_that_overlap_are_dropped() -> None:
    nothing = ForeignEvidence(0.0, 0.0, 1)
    windows = [
        ForeignPassage(64, 128, -9, nothing),
        ForeignPassage(96, 160, -8, nothing),
        ForeignPassage(128, 192, -7, nothing),
    ]
    windows += [ForeignPassage(300, 332, -6, nothing), ForeignPassage(400, 432, -1, nothing)]
    assert [(one.start, one.end, one.log10_e) for one in reported(windows, -5)] == [
        (64, 192, -9),
        (300, 332, -6),
    ]


def test_a_passage_in_a_long_text_is_found_where_it_stands() -> None:
    generator, mark = np.random.default_rng(4), VllmGumbel(3)
    tokens = generator.integers(0, 500, 1200).tolist()
    for place in range(500, 650):
        choices = generator.integers(0, 500, 6)
        scores = [mark.detect([*tokens[place - 4 : place], choice]).score for choice in choices.tolist()]
        tokens[place] = int(choices[int(np.argmax(scores))])
    # The score of four tokens and a choice differs between choices by that of the choice alone.
    found = reported(passages(mark.read(np.array(tokens)), len(tokens)), -5)
    assert [one.start < 560 and one.end > 590 for one in found] == [True]
    assert found[0].end - found[0].start < 400


def test_the_rate_of_windows_holds_over_keys() -> None:
    generator = np.random.default_rng(6)
    text = np.tile(generator.integers(0, 50, 60), 4)
    found = [
        passages(VllmGumbel(int(key)).read(text), text.size)[0].log10_e
        for key in generator.integers(1 << 62, size=300)
    ]
    for rate in (0.05, 0.2):
        assert np.mean(np.array(found) <= np.log10(rate)) < rate + 3 * math.sqrt(rate / 300)
    assert np.mean(np.array(found) <= np.log10(0.5)) > 0.05
