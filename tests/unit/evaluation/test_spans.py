"""Planted spans and their overlap with reported ones."""

import numpy as np
import pytest

from ttmark.evaluation.planted_spans import Span, best_overlap, overlap, plant

HUMAN = [np.arange(1_000, 1_400), np.arange(2_000, 2_300)]


def test_overlap_is_intersection_over_union() -> None:
    assert overlap(Span(0, 10), Span(5, 15)) == pytest.approx(5 / 15)
    assert overlap(Span(0, 10), Span(10, 20)) == 0.0
    assert best_overlap(Span(0, 10), [Span(20, 30), Span(0, 10)]) == 1.0
    assert best_overlap(Span(0, 10), []) == 0.0


@pytest.mark.parametrize("count", [0, 1, 3])
def test_planted_spans_stand_where_the_document_says(count: int) -> None:
    spans = [np.arange(n, n + 50 + n) for n in range(count)]
    for seed in range(20):
        document = plant(HUMAN, spans, 1_000, np.random.default_rng(seed))
        assert document.tokens.size == 1_000
        assert len(document.spans) == count
        for place, span in zip(document.spans, spans, strict=True):
            assert np.array_equal(document.tokens[place.start : place.end], span)
        outside = np.ones(1_000, dtype=bool)
        for place in document.spans:
            outside[place.start : place.end] = False
        assert (document.tokens[outside] >= 1_000).all()


def test_spans_longer_than_the_document_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        plant(HUMAN, [np.arange(60)], 50, np.random.default_rng(0))
