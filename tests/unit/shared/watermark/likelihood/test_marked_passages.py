"""Where the mark is: passages, their borders and their share of a text."""

from collections.abc import Callable

import numpy as np
import pytest

from ttmark.shared.watermark.likelihood.marked_passages import find_carried, share_of
from ttmark.shared.watermark.schemes.watermark import Watermark

PAIRS = Watermark("gumbel", 2, 2)
KEY = bytes(range(16))
Write = Callable[..., list[int]]


def other(length: int, seed: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, 60, length).tolist()


def test_a_passage_among_other_text_is_found_at_its_place(generate: Write) -> None:
    tokens = [*other(301, 1), *generate(PAIRS, KEY, 150, 3), *other(300, 2)]
    found = find_carried(PAIRS, KEY, tokens)
    assert len(found.passages) == 1
    passage = found.passages[0]
    assert passage.start == pytest.approx(301, abs=25)
    assert passage.end == pytest.approx(451, abs=25)
    assert passage.core[0] >= 301 - 10
    assert passage.start <= passage.core[0] < passage.core[1] <= passage.end
    assert passage.log10_gain > 8
    estimate, low, high = share_of(found.carried)
    assert low <= 150 / 751 <= high
    assert estimate == pytest.approx(150 / 751, abs=0.05)


def test_edited_words_are_gaps_of_a_passage_and_not_its_end(generate: Write) -> None:
    marked = generate(PAIRS, KEY, 300, 3)
    for at in (*range(60, 70), 140, 220):
        marked[at] = 900 + at
    found = find_carried(PAIRS, KEY, marked)
    assert len(found.passages) == 1
    assert share_of(found.carried)[0] > 0.95


def test_two_answers_of_one_key_are_two_passages(generate: Write) -> None:
    first, second = generate(PAIRS, KEY, 120, 3), generate(PAIRS, KEY, 121, 8)
    tokens = [*other(100, 1), *first, *other(200, 2), *second, *other(100, 4)]
    found = find_carried(PAIRS, KEY, tokens)
    starts = [passage.start for passage in found.passages if passage.log10_gain > 3]
    assert starts == pytest.approx([100, 420], abs=35)
    _, low, high = share_of(found.carried)
    assert low - 0.02 <= 241 / 641 <= high


def test_text_without_the_mark_carries_little(generate: Write) -> None:
    found = find_carried(PAIRS, bytes(16), other(800, 9))
    assert share_of(found.carried)[:2] == (pytest.approx(0.0, abs=0.25), 0.0)


def test_text_without_blocks_carries_nothing() -> None:
    for tokens in ([], [1, 2, 3]):
        found = find_carried(PAIRS, KEY, tokens)
        assert found.carried.tolist() == [0.0] * len(tokens)
        assert (share_of(found.carried), found.passages) == ((0.0, 0.0, 0.0), ())


def test_a_place_too_short_for_a_block_is_no_passage(generate: Write) -> None:
    """A context and block that stood in the passage, as a blank line may: one token is as there."""
    marked = generate(PAIRS, KEY, 150, 3)
    repeated = marked[80 : 80 + PAIRS.context_width + PAIRS.block_size]
    found = find_carried(PAIRS, KEY, [*other(100, 1), *marked, *other(100, 2), *repeated, *other(100, 4)])
    again = 350 + PAIRS.context_width
    assert found.carried[again] > 0.9 > 0.5 > found.carried[again + 1]
    assert len(found.passages) == 1


@pytest.mark.parametrize(("keys", "high"), [(1, 18), (2, 20)])
def test_what_may_be_an_opening_before_what_is_possibly_marked_belongs_to_the_share_at_most(
    keys: int, high: int
) -> None:
    carried = np.zeros(100)
    carried[[50, 51, 53]] = 0.96, 0.06, 0.03
    assert share_of(carried, keys) == pytest.approx((0.0105, 0.01, high / 100))
