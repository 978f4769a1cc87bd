"""A finding in words: how much of a text it covers, how surely, and lengths as people count them."""

import pytest

from ttmark.shared.detection_words import about_words, message
from ttmark.shared.schemas.detection import CombinedResult, DetectedKey, MarkedShare, Segment


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
def test_an_end_of_the_interval_is_named_where_it_says_something(low: float, high: float, words: str) -> None:
    share = MarkedShare(estimate=(low + high) / 2, low=low, high=high)
    result = CombinedResult(id="a", verdict="watermarked", tokens=200, hypotheses=16, marked_share=share)
    assert words in message(result, 1e-5).explanation


def test_without_a_share_nothing_is_said_of_it() -> None:
    result = CombinedResult(id="a", verdict="watermarked", tokens=200, hypotheses=16)
    assert " hold" not in message(result, 1e-5).explanation


def test_passages_are_contained_and_a_text_without_any_carries_the_mark() -> None:
    key = DetectedKey(key_id="k", version=1, profile="p")
    passages = [Segment(start_token=0, end_token=40, log10_e_value=-9.0, key=key)]
    for segments, start in (
        (
            [],
            "This text carries our watermark, of our key k, version 1. Passages that carry it hold at least",
        ),
        (passages, "This text contains a passage made with our key k, version 1. It holds at least"),
        (passages * 2, "This text contains passages made with our key k, version 1. They hold at least"),
    ):
        share = MarkedShare(estimate=0.8, low=0.5, high=1.0)
        result = CombinedResult(
            id="a",
            verdict="watermarked",
            tokens=99,
            hypotheses=1,
            key=key,
            segments=segments,
            marked_share=share,
        )
        assert message(result, 1e-5).explanation.startswith(start)


@pytest.mark.parametrize(("log10_p", "said"), [(-11.9, False), (-12.0, True), (-41.0, True)])
def test_what_is_too_rare_to_picture_is_called_practically_impossible(log10_p: float, said: bool) -> None:
    result = CombinedResult(id="a", verdict="watermarked", tokens=99, hypotheses=1, log10_p=log10_p)
    assert ("practically impossible by chance" in message(result, 1e-5).explanation) is said


@pytest.mark.parametrize(
    ("tokens", "words"), [(1, "1 English word"), (27, "20 English words"), (175, "130 English words")]
)
def test_lengths_are_told_in_words(tokens: int, words: str) -> None:
    assert about_words(tokens) == words
