"""What one tokenizer's reading says of another's tokens, and which readings are none."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from tests.unit.detect_service.conftest import byte_tokenizer
from ttmark.shared.byte_reading import (
    LEAST_LOGPROB,
    ByteReading,
    InvalidReading,
    byte_ends,
    byte_spans,
    reading_windows,
)
from ttmark.shared.tokenization import TextTokenizer

TEXTS = st.text(st.sampled_from("ab é漢字😀́ "), min_size=1, max_size=40)


def partition(size: int) -> st.SearchStrategy[list[int]]:
    """Where the parts of a text of `size` bytes end."""
    return st.sets(st.integers(1, size - 1) if size > 1 else st.nothing()).map(
        lambda cuts: [*sorted(cuts), size]
    )


@st.composite
def readings(draw: Any) -> tuple[list[int], list[float], list[int]]:
    """Ends of a foreign reader's parts, their log-probabilities, ends of the writer's tokens."""
    size = draw(st.integers(1, 60))
    ends = draw(partition(size))
    logprobs = draw(st.lists(st.floats(-60, 0), min_size=len(ends), max_size=len(ends)))
    return ends, logprobs, draw(partition(size))


def spans_of(ends: list[int]) -> list[tuple[int, int]]:
    return list(pairwise([0, *ends]))


@given(readings())
def test_surprise_is_shared_over_bytes_as_byte_by_byte_arithmetic_has_it(drawn):
    ends, logprobs, writers = drawn
    by_byte: list[Fraction] = []
    for (start, end), logprob in zip(spans_of(ends), logprobs, strict=True):
        by_byte += [Fraction(-logprob) / (end - start)] * (end - start)
    spans = spans_of(writers)
    starts = [start for start, _ in spans_of(ends)]
    found = ByteReading.checked(starts, ends, logprobs, ends[-1]).surprise(np.array(spans))
    slow = [float(sum(by_byte[start:end])) / math.log(2) for start, end in spans]
    np.testing.assert_allclose(found, slow, rtol=1e-9, atol=1e-9)
    assert found.sum() == pytest.approx(-sum(logprobs) / math.log(2), abs=1e-9)
    assert (found >= 0).all()


GOOD = {"starts": [0, 2, 5], "ends": [2, 5, 9], "logprobs": [-1.0, -2.0, -0.5], "size": 9}


def of_second(*values: Any) -> list[dict[str, Any]]:
    """Readings that say something else of their second part."""
    return [{"logprobs": [-1.0, value, -0.5]} for value in values]


FAULTS: dict[str, list[dict[str, Any]]] = {
    "not_finite": of_second(math.nan, -math.inf, math.inf),
    "positive": of_second(0.1),
    "not_numbers": [
        *of_second(None, [-2.0], -(10**400)),
        *({"logprobs": odd} for odd in ([None, None, -0.5], ["-1", "-2", "-3"], [[-1.0], [-2.0], [-0.5]])),
        *({"starts": odd} for odd in ([0.0, 2.0, 5.0], [False, True, True])),
        *({"ends": odd} for odd in ([2, 5, 2**63], [[2], [5], [9]], None)),
    ],
    "length": [{"logprobs": [-1.0, -2.0]}, {"starts": [0, 2]}],
    "another_text": [{"starts": [], "ends": [], "logprobs": []}, {"size": 10}, {"size": 8}],
    "gap": [{"starts": [0, 3, 5]}, {"starts": [1, 2, 5]}],
    "overlap": [
        *({"starts": odd} for odd in ([0, 1, 5], [-3, 2, 5])),
        {"starts": [0, 2, 2], "ends": [2, 2, 9]},
        {"starts": [0, 2, 1], "ends": [2, 1, 9]},
    ],
}


@pytest.mark.parametrize(("change", "fault"), [(one, name) for name in FAULTS for one in FAULTS[name]])
def test_a_reading_that_cannot_be_of_the_text_is_refused_as_a_whole(change, fault):
    ByteReading.checked(**GOOD)
    with pytest.raises(InvalidReading) as refused:
        ByteReading.checked(**GOOD | change)
    assert refused.value.fault == fault


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2)


@given(*[st.lists(ANYTHING, max_size=5)] * 3, st.integers(0, 12))
def test_whatever_a_reader_says_is_a_reading_of_the_whole_text_or_refused(starts, ends, logprobs, size):
    try:
        reading = ByteReading.checked(starts, ends, logprobs, size)
    except InvalidReading:
        return
    assert [0, *reading.ends.tolist()][-1] == size
    bits = reading.surprise(np.array([(place, place + 1) for place in range(size)]).reshape(-1, 2))
    assert np.isfinite(bits).all()
    assert (bits >= 0).all()


def test_a_first_part_of_which_nothing_is_said_counts_as_certain_and_rounding_as_none() -> None:
    reading = ByteReading.checked(**GOOD | {"logprobs": [None, 1e-7, -1e30]})
    assert reading.logprobs.tolist() == [0.0, 0.0, LEAST_LOGPROB]


def test_a_span_beyond_the_text_that_was_read_is_refused() -> None:
    reading = ByteReading.checked(**GOOD)
    assert reading.surprise(np.zeros((0, 2), dtype=np.int64)).tolist() == []
    for span in ((0, 10), (-1, 3)):
        with pytest.raises(InvalidReading):
            reading.surprise(np.array([span]))


def test_tokens_without_bytes_belong_to_the_next_that_has_some_and_at_the_end_to_the_last() -> None:
    ends, logprobs = np.array([0, 2, 2, 5, 5]), np.array([-1.0, -2.0, -4.0, -8.0, -16.0])
    reading = ByteReading.of_tokens(ends, logprobs)
    assert reading.ends.tolist() == [2, 5]
    assert reading.logprobs.tolist() == [-3.0, -28.0]
    for nothing in (np.array([], dtype=np.int64), np.array([0, 0])):
        assert ByteReading.of_tokens(nothing, np.zeros(len(nothing))).ends.tolist() == []


def words() -> TextTokenizer:
    """Words without the blanks between them, all of them one token."""
    backend = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return TextTokenizer(backend)


@given(TEXTS, st.sampled_from([byte_tokenizer, words]))
def test_spans_are_the_whole_text_in_order(text: str, tokenizer: Callable[[], TextTokenizer]) -> None:
    offsets = tokenizer().encode_with_offsets(text).offsets
    spans = byte_spans(text, offsets).tolist()
    if not spans:
        return
    assert [spans[0][0], spans[-1][1]] == [0, len(text.encode())]
    assert all(first[1] == second[0] for first, second in pairwise(spans))
    assert all(start <= end for start, end in spans)


def test_a_character_s_bytes_are_shared_by_the_tokens_that_are_parts_of_it() -> None:
    # A token that ends inside 漢, one that is the rest of it and a part of 字, and the rest of that.
    assert byte_ends("a漢字", [(0, 2), (1, 3), (2, 3)]).tolist() == [2, 5, 7]
    assert byte_ends("😀", [(0, 1)] * 2).tolist() == [2, 4]


@given(st.integers(1, 400), st.integers(1, 60))
def test_windows_keep_every_token_once_after_a_quarter_of_a_window(tokens: int, size: int) -> None:
    kept: list[int] = []
    for window in reading_windows(tokens, size):
        assert window.end - window.start <= size
        assert window.kept - window.start == (size // 4 if window.start else 0)
        kept += range(window.kept, window.end)
    assert kept == list(range(tokens))
