"""Sampling by inversion, and the likeliest tokens by groups against torch's topk on whole rows."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ttmark.gen_service.decoding import largest_logits as largest_module
from ttmark.gen_service.decoding.filtered_tokens import choose, top_k
from ttmark.gen_service.decoding.largest_logits import largest


@given(
    rows=st.integers(1, 4),
    vocab=st.integers(1, 3000),
    share=st.floats(0, 1),
    levels=st.sampled_from([0, 3, 50]),
    seed=st.integers(0, 1000),
    grouped=st.booleans(),
)
@settings(max_examples=200)
def test_the_values_are_those_of_topk_and_the_ids_point_at_them(
    rows: int, vocab: int, share: float, levels: int, seed: int, grouped: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn((rows, vocab), generator=generator)
    if levels:
        logits = torch.round(logits * levels) / levels
    width = 1 + int(share * min(vocab - 1, 80))
    values, ids, _ = top_k(logits, width, grouped=grouped)
    expected = torch.topk(logits, width, dim=1).values.double().numpy()
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(np.take_along_axis(logits.double().numpy(), ids, axis=1), values)
    assert all(len(set(row)) == width for row in ids.tolist())


SPECIAL = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1.0, 1e-40])


@given(
    rows=st.integers(1, 3),
    vocab=st.integers(1, 700),
    share=st.floats(0, 1),
    kind=st.sampled_from(["drawn", "few", "special", "rising", "falling", "hidden"]),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=300)
def test_the_compiled_search_finds_what_a_stable_sort_does(
    rows: int, vocab: int, share: float, kind: str, dtype: torch.dtype, seed: int
) -> None:
    """Rows that lie in wider ones; NaN first, and of equal numbers the lower id."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn((rows, vocab + 3), generator=generator)
    if kind == "few":
        logits = torch.round(logits)
    elif kind == "special":
        logits = SPECIAL[torch.randint(len(SPECIAL), logits.shape, generator=generator)]
    elif kind in ("rising", "falling"):
        logits = logits.sort(descending=kind == "falling").values
    elif kind == "hidden":
        logits[torch.rand(logits.shape, generator=generator) < 0.9] = -torch.inf
    part, width = logits.to(dtype)[:, 1 : vocab + 1], 1 + int(share * (vocab - 1))
    found = largest(part, width)
    assert found is not None
    numbers = part.double().numpy()
    keys = np.where(np.isnan(numbers), -np.inf, -numbers)
    for row, (own, nan) in enumerate(zip(keys, np.isnan(numbers), strict=True)):
        order = np.lexsort((own, ~nan))[:width]
        np.testing.assert_array_equal(found[1][row], order)
        np.testing.assert_array_equal(found[0][row], numbers[row, order])


def test_what_the_compiled_search_does_not_read_is_found_by_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.randn((3, 4000), generator=torch.Generator().manual_seed(0))
    for unread in (logits.half(), logits.t().contiguous().t(), logits.to("meta")):
        assert largest(unread, 5) is None
    expected = top_k(logits, 5)
    monkeypatch.setattr(largest_module, "_library", lambda: None)
    assert largest(logits, 5) is None
    assert all(map(np.array_equal, top_k(logits, 5)[:2], expected[:2]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_many_long_rows_give_what_each_gives_alone(dtype: torch.dtype) -> None:
    logits = torch.randn((7, 100_003), generator=torch.Generator().manual_seed(0)).to(dtype)
    values, ids, _ = top_k(logits, 66)
    for row in range(len(logits)):
        own, own_ids, _ = top_k(logits[row][None], 66)
        np.testing.assert_array_equal(values[row], own[0])
        np.testing.assert_array_equal(values[row], torch.topk(logits[row].float(), 66).values.numpy())
        inside = own[0] > own[0, -1]
        np.testing.assert_array_equal(ids[row][inside], own_ids[0][inside])


@given(
    seed=st.integers(0, 1000),
    scale=st.sampled_from([0.01, 1.0, 8.0]),
    temperature=st.sampled_from([1e-300, 0.3, 1.0, 2.0]),
    finite=st.sampled_from([40, 400, 5003]),
)
@settings(max_examples=60)
def test_the_maxima_of_groups_tell_how_much_can_lie_below_the_window(
    seed: int, scale: float, temperature: float, finite: int
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn((3, 5003), generator=generator) * scale
    logits[:, torch.randperm(5003, generator=generator)[finite:]] = -torch.inf
    values, _, groups = top_k(logits, 65, grouped=True)
    assert groups is not None
    most = groups.most_below(np.array([0, 2]), values, np.full(3, temperature))
    for row, bound in zip((0, 2), most, strict=True):
        below = np.sort(logits[row].double().numpy())[:-65]
        with np.errstate(over="ignore"):
            exact = np.exp((below - values[row, 0]) / temperature).sum()
        assert exact <= bound <= 5003 * np.exp((values[row, -1] - values[row, 0]) / temperature) * 1.01


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("vocab", [100, 4000])
def test_nan_comes_first(vocab: int, grouped: bool) -> None:
    logits = torch.randn((2, vocab), generator=torch.Generator().manual_seed(0))
    logits[1, vocab // 2] = float("nan")
    values, _, _ = top_k(logits, 5, grouped=grouped)
    assert np.isnan(values[1, 0])
    assert np.isfinite(values[0]).all()


@pytest.mark.parametrize(
    ("uniform", "expected"), [(0.0, 1), (0.24, 1), (0.26, 3), (0.99, 3), (1.0 - 2**-53, 3)]
)
def test_choose_inverts_the_cumulative_sum_and_skips_what_has_no_mass(uniform: float, expected: int) -> None:
    assert choose(np.array([0.0, 0.25, 0.0, 0.75, 0.0]), uniform) == expected


def test_choose_normalises() -> None:
    assert choose(np.array([3.0, 1.0]), 0.7) == 0
    assert choose(np.array([3.0, 1.0]), 0.8) == 1
