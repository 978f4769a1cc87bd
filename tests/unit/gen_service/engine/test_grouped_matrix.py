"""Matrices of whole numbers beside the same sums in double precision."""

import ctypes

import pytest
import torch

from tests.unit.gen_service.engine.test_native_kernels import compiled, draw  # noqa: F401
from ttmark.gen_service.engine.model.grouping import Grouping
from ttmark.gen_service.engine.native import SOURCE, Kernels
from ttmark.gen_service.engine.native.grouped import GROUP, GroupedMatrix
from ttmark.shared.watermark.compiled import usable_levels

DTYPES = (torch.float32, torch.bfloat16)


@pytest.fixture(name="all_kernels", scope="module")
def _all_kernels(compiled) -> list[Kernels]:  # type: ignore[no-untyped-def]  # noqa: F811
    """Of every level that this processor has, the highest first."""
    levels = usable_levels() or pytest.skip("no instructions that the kernels are written for")
    return [Kernels(ctypes.CDLL(str(compiled / SOURCE.file_name(level)))) for level in levels]


def stands_for(rows: torch.Tensor) -> torch.Tensor:
    """Rows [n, ins] as the whole numbers that they are multiplied as, in double precision."""
    groups = rows.float().view(len(rows), -1, GROUP)
    most = groups.abs().amax(2, keepdim=True)
    return (torch.round(groups * (127 / most)).double() * most.double() / 127).view(rows.shape)


def whole(bits: int, outs: int, ins: int, dtype: torch.dtype) -> torch.Tensor:
    """A matrix [outs, ins] of numbers that such a file holds; each group has its lowest and its highest."""
    generator = torch.Generator().manual_seed(outs)
    codes = torch.randint(0, 16 if bits == 4 else 255, (outs, ins // GROUP, GROUP), generator=generator)
    codes[..., 0], codes[..., 1] = 0, 15 if bits == 4 else 254
    scales = torch.rand((outs, ins // GROUP, 1), generator=generator) / 100 + 1e-3
    offsets = -scales * (torch.rand(scales.shape, generator=generator) * 15 if bits == 4 else 127)
    return (codes * scales.half() + offsets.half()).view(outs, ins).to(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("outs", "ins"), [(64, 576), (70, 96), (5, 32)])
def test_a_product_is_that_of_what_the_numbers_stand_for(
    all_kernels: list[Kernels], dtype: torch.dtype, bits: int, outs: int, ins: int
) -> None:
    rows, residual = draw(41, ins, dtype=dtype), draw(41, outs, dtype=dtype)
    for kernels in all_kernels:
        matrix = GroupedMatrix(draw(outs, ins, dtype=dtype), bits, kernels)
        values = matrix.values(torch.arange(outs)).double()
        expected = stands_for(rows) @ values.t()
        # One number of a row may be rounded to the other side; in bfloat16 the sum is rounded as well.
        step = float(rows.abs().max() * values.abs().max()) / 127
        scale = step + float(expected.abs().max()) * (2**-8 if dtype == torch.bfloat16 else 1e-6)
        torch.testing.assert_close(matrix(rows).double(), expected, atol=scale, rtol=0)
        added = matrix.added_to(residual, rows).double()
        torch.testing.assert_close(added, expected + residual.double(), atol=2 * scale, rtol=0)


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_row_has_the_same_bits_in_any_batch_and_on_any_processor(
    all_kernels: list[Kernels], dtype: torch.dtype, bits: int
) -> None:
    weight, rows = draw(70, 576, dtype=dtype), draw(200, 576, dtype=dtype)
    expected = GroupedMatrix(weight, bits, all_kernels[0])(rows[:1])
    for kernels in all_kernels:
        matrix = GroupedMatrix(weight, bits, kernels)
        for count in (*range(1, 70), 200):
            assert torch.equal(matrix(rows[:count])[:1], expected), count
            assert torch.equal(matrix(rows[:count].flip(0))[-1:], expected), count


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("outs", "ins"), [(64, 576), (70, 96), (5, 32)])
def test_many_rows_may_be_multiplied_by_the_values_in_bfloat16(
    all_kernels: list[Kernels], outs: int, ins: int, bits: int
) -> None:
    matrix = GroupedMatrix(draw(outs, ins, dtype=torch.bfloat16), bits, all_kernels[0])
    rows, residual = draw(200, ins, dtype=torch.bfloat16), draw(200, outs, dtype=torch.bfloat16)
    expected = rows.double() @ matrix.values(torch.arange(outs)).double().t()
    scale = 2**-8 * float(expected.abs().max())
    few, matrix.alike = matrix(rows[:1]), False
    assert torch.equal(matrix(rows[:1]), few)
    for count in (15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 200):
        alone = matrix(rows[:count])
        if matrix.multiplies_tiles and count >= 16:
            torch.testing.assert_close(alone.double(), expected[:count], atol=scale, rtol=0)
        added = matrix.added_to(residual[:count], rows[:count])
        torch.testing.assert_close(added, alone + residual[:count], atol=4 * scale, rtol=0)


@pytest.mark.parametrize("bits", [4, 8])
def test_rows_of_a_fine_matrix_keep_their_values(all_kernels: list[Kernels], bits: int) -> None:
    weight, rows = draw(70, 576), draw(41, 576)
    results = []
    for kernels in all_kernels:
        matrix = GroupedMatrix(weight, bits, kernels, fine=True)
        expected = rows.double() @ matrix.values(torch.arange(70)).double().t()
        scale = 2**-14 * float(expected.abs().max())
        torch.testing.assert_close(matrix(rows).double(), expected, atol=scale, rtol=0)
        results += [matrix(rows[:count])[0] for count in (1, 4, 5, 41)]
    assert all(torch.equal(each, results[0]) for each in results)


@pytest.mark.parametrize("bits", [4, 8])
def test_threads_share_the_outputs(all_kernels: list[Kernels], bits: int) -> None:
    weight, rows = draw(700, 576, dtype=torch.bfloat16), draw(33, 576, dtype=torch.bfloat16)
    matrix, threads = GroupedMatrix(weight, bits, all_kernels[0]), torch.get_num_threads()
    for matrix.alike in (True, False):
        torch.set_num_threads(1)
        alone = matrix(rows)
        torch.set_num_threads(2)
        try:
            assert torch.equal(matrix(rows), alone)
        finally:
            torch.set_num_threads(threads)


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_finite_stays_so(all_kernels: list[Kernels], wrong: float) -> None:
    rows = draw(9, 64)
    rows[3, 40] = wrong
    for kernels in all_kernels:
        finite = torch.isfinite(GroupedMatrix(draw(20, 64), 4, kernels)(rows)).all(1)
        assert finite.tolist() == [row != 3 for row in range(9)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bits", [4, 8])
def test_numbers_that_were_in_groups_keep_their_values(
    all_kernels: list[Kernels], dtype: torch.dtype, bits: int
) -> None:
    weight = whole(bits, 48, 96, dtype)
    kept = GroupedMatrix(weight, bits, all_kernels[0]).values(torch.arange(48))
    most = weight.view(48, 3, GROUP).abs().amax(2, keepdim=True).float()
    assert float(((kept.float() - weight.float()).view(48, 3, GROUP).abs() / most).max()) <= 1 / 128


def test_exact_grouping_refuses_numbers_that_were_never_in_groups(all_kernels: list[Kernels]) -> None:
    grouping = Grouping(4, all_kernels[0], exact=True, kept=True)
    weight = draw(48, 96, dtype=torch.bfloat16)
    before = weight.clone()
    with pytest.raises(ValueError, match="more than 16 values"):
        grouping(weight.t())
    assert torch.equal(weight, before)
    weight = whole(4, 48, 96, torch.bfloat16)
    matrix = grouping(weight.t())
    assert torch.equal(weight, matrix.values(torch.arange(48)))  # the model has what is computed with


@pytest.mark.parametrize(
    ("ins", "bits", "dtype"), [(33, 4, torch.float32), (64, 5, torch.float32), (64, 4, torch.float16)]
)
def test_what_has_no_groups_is_refused(
    all_kernels: list[Kernels], ins: int, bits: int, dtype: torch.dtype
) -> None:
    with pytest.raises(ValueError, match=f"in {bits} bits"):
        GroupedMatrix(draw(16, ins, dtype=dtype), bits, all_kernels[0])


@pytest.mark.parametrize("wrong", [-1, 16])
def test_an_output_that_is_none_is_refused(all_kernels: list[Kernels], wrong: int) -> None:
    with pytest.raises(IndexError):
        GroupedMatrix(draw(16, 64), 4, all_kernels[0]).values(torch.tensor([0, wrong]))


def test_rows_and_residuals_may_be_parts_of_wider_ones(all_kernels: list[Kernels]) -> None:
    matrix, wide = GroupedMatrix(draw(32, 64), 4, all_kernels[0]), draw(9, 256)
    rows, residual = wide[:, 64:128], wide[:, 128:160]
    expected = matrix(rows.contiguous()) + residual
    torch.testing.assert_close(matrix.added_to(residual, rows), expected, atol=1e-5, rtol=0)


def test_a_matrix_of_zeros_and_a_row_of_zeros(all_kernels: list[Kernels]) -> None:
    for bits in (4, 8):
        assert not GroupedMatrix(torch.zeros(16, 64), bits, all_kernels[0])(draw(3, 64)).any()
        assert not GroupedMatrix(draw(16, 64), bits, all_kernels[0])(torch.zeros(3, 64)).any()
