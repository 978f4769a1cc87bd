"""Filters in the space of the likeliest tokens against transformers' warpers on whole rows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import MinPLogitsWarper, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper

from gen_service.decoding.filters import FilterParams, filter_rows
from gen_service.decoding.support import Support


def reference(row: torch.Tensor, params: FilterParams) -> dict[int, float]:
    """transformers' warpers in its order, and a softmax, in float64."""
    scores = row.double()[None]
    ids = torch.zeros((1, 1), dtype=torch.int64)
    scores = TemperatureLogitsWarper(params.temperature)(ids, scores)
    if params.top_k:
        scores = TopKLogitsWarper(params.top_k)(ids, scores)
    if params.top_p < 1.0:
        scores = TopPLogitsWarper(params.top_p)(ids, scores)
    if params.min_p > 0.0:
        scores = MinPLogitsWarper(params.min_p)(ids, scores)
    probs = torch.softmax(scores, dim=-1)[0]
    return {int(token): float(probs[token]) for token in torch.nonzero(probs)[:, 0]}


def only(supports: list[Support | None]) -> Support:
    (support,) = supports
    assert support is not None
    return support


def assert_equal(support: Support, expected: dict[int, float]) -> None:
    assert set(support.ids.tolist()) == set(expected)
    np.testing.assert_allclose(support.probs, [expected[i] for i in support.ids.tolist()], rtol=1e-9)
    assert support.probs.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.diff(support.probs) <= 0).all()


filters = st.builds(
    FilterParams,
    temperature=st.sampled_from([0.3, 0.7, 1.0, 1.7]),
    top_k=st.sampled_from([0, 1, 2, 20, 50, 5000]),
    top_p=st.sampled_from([0.0513, 0.503, 0.807, 0.951, 0.999, 1.0]),
    min_p=st.sampled_from([0.0, 0.02, 0.5]),
)


@given(
    params=filters,
    seed=st.integers(0, 10_000),
    vocab=st.sampled_from([1, 3, 60, 3000]),
    scale=st.sampled_from([0.01, 1.0, 8.0]),
)
@settings(max_examples=150, deadline=None)
def test_a_support_equals_that_of_transformers_warpers(
    params: FilterParams, seed: int, vocab: int, scale: float
) -> None:
    row = torch.randn(vocab, generator=torch.Generator().manual_seed(seed)) * scale
    assert_equal(only(filter_rows(row[None], [params])), reference(row, params))


@given(params=filters, seed=st.integers(0, 10_000))
@settings(max_examples=100, deadline=None)
def test_of_ties_as_many_are_kept_as_in_transformers_and_those_with_the_lowest_ids(
    params: FilterParams, seed: int
) -> None:
    row = torch.randint(0, 4, (400,), generator=torch.Generator().manual_seed(seed)).float()
    support = only(filter_rows(row[None], [params]))
    np.testing.assert_allclose(support.probs, sorted(reference(row, params).values(), reverse=True))
    order = np.lexsort((np.arange(400), -row.numpy()))
    assert support.ids.tolist() == order[: len(support.ids)].tolist()


@given(params=st.lists(filters, min_size=2, max_size=6), seed=st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_a_row_comes_out_the_same_to_the_last_bit_whatever_its_neighbours_are(
    params: list[FilterParams], seed: int
) -> None:
    rows = torch.randn((len(params), 700), generator=torch.Generator().manual_seed(seed)) * 3
    together = filter_rows(rows, params)
    for row, own, support in zip(rows, params, together, strict=True):
        alone = only(filter_rows(row[None], [own]))
        assert support is not None
        np.testing.assert_array_equal(support.ids, alone.ids)
        np.testing.assert_array_equal(support.probs, alone.probs)


def test_temperature_zero_leaves_the_first_of_the_likeliest_tokens() -> None:
    row = torch.zeros(300)
    row[[7, 250]] = 1.0
    support = only(filter_rows(row[None], [FilterParams(temperature=0.0)]))
    assert support.ids.tolist() == [7]
    assert support.probs.tolist() == [1.0]


def test_temperature_zero_finds_the_first_token_among_more_ties_than_the_window_holds() -> None:
    assert only(filter_rows(torch.ones(1, 4000), [FilterParams(temperature=0.0)])).ids.tolist() == [0]


def test_without_any_filter_the_whole_vocabulary_is_the_support() -> None:
    row = torch.randn(2000, generator=torch.Generator().manual_seed(3))
    support = only(filter_rows(row[None], [FilterParams()]))
    assert len(support.ids) == 2000
    np.testing.assert_allclose(support.probs, torch.softmax(row.double(), 0).numpy()[support.ids], rtol=1e-12)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("params", [FilterParams(top_k=5), FilterParams(), FilterParams(temperature=0.0)])
def test_a_row_that_is_not_finite_is_reported_and_its_neighbour_is_not_touched(
    bad: float, params: FilterParams
) -> None:
    rows = torch.randn((2, 50), generator=torch.Generator().manual_seed(5))
    expected = only(filter_rows(rows[1:], [params]))
    rows[0, 20] = bad
    broken, healthy = filter_rows(rows, [params, params])
    assert broken is None
    assert healthy is not None
    np.testing.assert_array_equal(healthy.probs, expected.probs)


def test_tokens_forbidden_by_minus_infinity_have_no_mass() -> None:
    row = torch.full((40,), -torch.inf)
    row[[3, 4]] = torch.tensor([1.0, 2.0])
    assert only(filter_rows(row[None], [FilterParams(top_k=10)])).ids.tolist() == [4, 3]
    assert filter_rows(torch.full((1, 40), -torch.inf), [FilterParams(top_k=10)]) == [None]
