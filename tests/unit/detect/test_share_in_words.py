"""How much of a text a finding covers, in words: an interval that says nothing is not printed as one."""

import pytest

from ttmark.shared.detection_words import message
from ttmark.shared.schemas.detection_combined import CombinedResult, MarkedShare


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (0.3, 0.76, "They hold 30 % to 76 % of its tokens."),
        (0.45, 1.0, "They hold at least 45 % of its tokens."),
        (0.02, 0.4, "They hold at most 40 % of its tokens."),
        (0.0, 1.0, "How much of the text they hold cannot be told."),
    ],
)
def test_an_end_of_the_interval_is_named_where_it_says_something(low: float, high: float, words: str) -> None:
    share = MarkedShare(estimate=(low + high) / 2, low=low, high=high)
    result = CombinedResult(id="a", verdict="watermarked", tokens=200, hypotheses=16, marked_share=share)
    assert words in message(result, 1e-5).explanation


def test_without_a_share_nothing_is_said_of_it() -> None:
    result = CombinedResult(id="a", verdict="watermarked", tokens=200, hypotheses=16)
    assert "They hold" not in message(result, 1e-5).explanation
