"""A finding in words: how much of a text it covers, how surely, and lengths as people count them."""

import pytest

from ttmark.shared.detection_words import about_words, message
from ttmark.shared.schemas.detection import DetectedKey, Segment
from ttmark.shared.schemas.detection_combined import CombinedResult, MarkedShare

KEY = DetectedKey(key_id="k", version=1, profile="p")
PASSAGE = Segment(start_token=0, end_token=40, log10_e_value=-9.0, key=KEY)


def explained(low=None, high=None, **fields) -> str:
    share = low if low is None else MarkedShare(estimate=(low + high) / 2, low=low, high=high)
    result = CombinedResult(
        id="a", verdict="watermarked", tokens=99, hypotheses=16, marked_share=share, **fields
    )
    return message(result, 1e-5).explanation


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.3, 0.76, "Passages that carry it hold 30 % to 76 % of the text."),
        (0.45, 1.0, "Passages that carry it hold at least 45 % of the text."),
        (0.94, 1.0, "Passages that carry it hold at least 94 % of the text. We cannot say which parts"),
        (0.95, 1.0, "All of the text carries it, or nearly all. The answer is held"),
        (0.02, 0.4, "Passages that carry it hold at most 40 % of the text."),
        (0.0, 1.0, "How much of the text carries the mark cannot be told."),
    ],
)
def test_an_end_of_the_interval_is_named_where_it_says_something(low, high, words):
    assert words in explained(low, high)
    assert " hold" not in explained()


@pytest.mark.parametrize(
    ("segments", "start"),
    [
        ([], "carries our watermark, of our key k, version 1. Passages that carry it hold at least"),
        ([PASSAGE], "contains a passage made with our key k, version 1. It holds at least"),
        ([PASSAGE] * 2, "contains passages made with our key k, version 1. They hold at least"),
    ],
)
def test_passages_are_contained_and_a_text_without_any_carries_the_mark(segments, start):
    assert explained(0.5, 1.0, key=KEY, segments=segments).startswith(f"This text {start}")


@pytest.mark.parametrize(("log10_p", "said"), [(-11.9, False), (-12.0, True), (-41.0, True)])
def test_what_is_too_rare_to_picture_is_called_practically_impossible(log10_p, said):
    assert ("practically impossible by chance" in explained(log10_p=log10_p)) is said


def test_lengths_are_told_in_words():
    words = [about_words(tokens) for tokens in (1, 27, 175)]
    assert words == ["1 English word", "20 English words", "130 English words"]
