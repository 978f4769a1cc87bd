"""The compiled operations of a CPU beside torch's, and what happens where they cannot be compiled."""

import ctypes
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from torch.nn import functional

from ttmark.gen_service.engine import native as kernels_module
from ttmark.gen_service.engine.model.llama import turn
from ttmark.gen_service.engine.model.tree_attention import tile_spans
from ttmark.gen_service.engine.native import Kernels
from ttmark.shared.watermark import compiled as compiling
from ttmark.shared.watermark.compiled import usable_levels

DTYPES = (torch.float32, torch.bfloat16)
TOLERANCE = {torch.float32: 2e-6, torch.bfloat16: 2**-8}


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A folder with the libraries of every level of this machine's kind: an image takes all of them along."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "levels"  # compiled once for all workers
    try:
        with FileLock(folder.with_suffix(".lock")):
            if not folder.exists():
                kernels_module.SOURCE.compile_all(folder)
    except FileNotFoundError:
        pytest.skip("no C compiler")
    return folder


@pytest.fixture(name="kernels", scope="module", params=usable_levels() or [None])
def _kernels(request: pytest.FixtureRequest, compiled: Path) -> Kernels:
    """Of every level that this processor has: the lower ones are what other machines run."""
    if request.param is None:
        pytest.skip("no instructions that the kernels are written for")
    return Kernels(ctypes.CDLL(str(compiled / kernels_module.SOURCE.file_name(request.param))))


def draw(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(sum(shape))
    return torch.randn(shape, generator=generator).to(dtype)


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    """`expected` is in double precision; what is found may have been rounded once."""
    tolerance = TOLERANCE[found.dtype]
    torch.testing.assert_close(found.double(), expected.double(), atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [64, 576, 37])
def test_normalisation(kernels: Kernels, dtype: torch.dtype, width: int) -> None:
    rows, weight = draw(5, 2 * width, dtype=dtype)[:, :width], draw(width, dtype=dtype)
    expected = functional.rms_norm(rows.double(), (width,), weight.double(), 1e-5)
    close(kernels.normalise(rows, weight, 1e-5), expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", [16, 64, 80])
def test_heads_are_turned_as_torch_turns_them(kernels: Kernels, dtype: torch.dtype, dim: int) -> None:
    packed = draw(4, 5 * dim, dtype=dtype)
    turns = torch.polar(torch.ones(4, dim // 2), draw(4, dim // 2))[:, None]
    expected = packed.clone()
    turn(expected[:, : 3 * dim].view(4, 3, dim), turns)
    kernels.turn(packed, turns, 3, dim)
    torch.testing.assert_close(packed, expected, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    assert torch.equal(packed[:, 3 * dim :], expected[:, 3 * dim :])  # values are not turned


@pytest.mark.parametrize("dtype", DTYPES)
def test_gates(kernels: Kernels, dtype: torch.dtype) -> None:
    gate_up = draw(3, 96, dtype=dtype) * 30
    gate, up = gate_up.double().chunk(2, dim=1)
    close(kernels.gate(gate_up), functional.silu(gate) * up)


def attend(kernels: Any, case: dict[str, torch.Tensor], tiles: torch.Tensor, own: torch.Tensor) -> Any:
    dim = case["query"].shape[2]
    keys, values = case["cache"].unbind(1)
    key, value = case["own"].unbind(1)
    return kernels.attend(case["query"], key, value, keys, values, tiles, own, dim**-0.5, case.get("sinks"))


def attend_row(case: dict[str, torch.Tensor], row: int, prefix: range, own: list[int]) -> torch.Tensor:
    """One row by definition, in double precision: [heads, dim]."""
    query = case["query"][row].double()
    seen = torch.cat([case["cache"][list(prefix)], case["own"][own]]).double()  # [n, 2, kv_heads, dim]
    keys, values = seen.repeat_interleave(query.shape[0] // seen.shape[2], 2).unbind(1)
    scores = torch.einsum("hd,nhd->hn", query, keys) * query.shape[1] ** -0.5
    if "sinks" in case:
        scores = torch.cat([scores, case["sinks"].double()[:, None]], dim=1)
    return torch.einsum("hn,nhd->hd", torch.softmax(scores, dim=1)[:, : len(keys)], values)


@pytest.mark.parametrize("with_sinks", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("heads", "kv_heads", "dim"), [(9, 3, 64), (4, 2, 16), (5, 1, 80), (40, 1, 128), (2, 2, 256)]
)
def test_attention_row_by_row(
    kernels: Kernels, with_sinks: bool, dtype: torch.dtype, heads: int, kv_heads: int, dim: int
) -> None:
    """Prefixes of no key, of one block and of many; more query rows than a tile takes; ancestors; strides."""
    rows, capacity = 60, 700
    arena = draw(2, kv_heads, capacity, dim, dtype=dtype).permute(2, 0, 1, 3)
    packed = draw(rows, (heads + 2 * kv_heads) * dim, dtype=dtype)
    query, own_rows = packed.split_with_sizes([heads * dim, 2 * kv_heads * dim], dim=1)
    case = {
        "query": query.view(rows, heads, dim),
        "own": own_rows.view(rows, 2, kv_heads, dim),
        "cache": arena,
    }
    if with_sinks:
        case["sinks"] = draw(heads) * 4
    spans = [(0, 1, 5, 5), (1, 4, 3, 40), (4, 44, 100, 612), (44, 58, 17, 81), (58, 60, 640, 641)]
    own = torch.full((rows, 3), -1, dtype=torch.int32)
    own[:, 0] = torch.arange(rows)
    own[3, 1:] = torch.tensor([2, 1])
    own[40, 2] = 5
    tiles = torch.from_numpy(tile_spans(spans, Kernels.tile_rows(heads // kv_heads))).int()
    found = attend(kernels, case, tiles, own)
    for start, stop, first, last in spans:
        for row in {*range(start, stop, 3), stop - 1}:  # wherever in a tile
            sources = [source for source in own[row].tolist() if source >= 0]
            close(found[row], attend_row(case, row, range(first, last), sources))


def test_a_row_has_the_same_bits_in_any_batch_and_place(kernels: Kernels) -> None:
    """Alone, among others of its tile, and elsewhere in the cache."""
    case = {"query": draw(7, 6, 64), "own": draw(7, 2, 2, 64), "cache": draw(300, 2, 2, 64)}
    own = torch.arange(7, dtype=torch.int32)[:, None].contiguous()
    together = attend(kernels, case, torch.tensor([[0, 7, 0, 130]], dtype=torch.int32), own)
    case["cache"][150:280] = case["cache"][:130]
    for row in range(7):
        one = {name: part[row : row + 1] for name, part in case.items() if name != "cache"}
        tile = torch.tensor([[0, 1, 150, 280]], dtype=torch.int32)
        alone = attend(kernels, one | {"cache": case["cache"]}, tile, own[:1])
        assert torch.equal(alone[0], together[row])


@pytest.mark.parametrize("poison", [float("nan"), float("inf")])
def test_what_is_not_finite_is_not_hidden(kernels: Kernels, poison: float) -> None:
    """A broken model must be seen in its logits."""
    case = {"query": draw(1, 1, 16), "own": draw(1, 2, 1, 16), "cache": draw(20, 2, 1, 16)}
    case["cache"][7] = poison
    tile = torch.tensor([[0, 1, 0, 20]], dtype=torch.int32)
    own = torch.zeros((1, 1), dtype=torch.int32)
    assert not torch.isfinite(attend(kernels, case, tile, own)).any()
    for dtype in DTYPES:
        rows = draw(1, 32, dtype=dtype)
        rows[0, 3] = poison
        assert not torch.isfinite(kernels.normalise(rows, torch.ones(32, dtype=dtype), 1e-5)).all()
        assert not torch.isfinite(kernels.gate(rows)).all()


def test_several_threads_compute_the_same(kernels: Kernels) -> None:
    rows, weight = draw(300, 640), draw(640)
    case = {"query": draw(8, 8, 64), "own": draw(8, 2, 4, 64), "cache": draw(4000, 2, 4, 64)}
    tiles = torch.tensor([[0, 3, 0, 3900], [3, 8, 10, 3000]], dtype=torch.int32)
    own = torch.arange(8, dtype=torch.int32)[:, None].contiguous()

    def compute() -> list[torch.Tensor]:
        return [kernels.normalise(rows, weight, 1e-5), kernels.gate(rows), attend(kernels, case, tiles, own)]

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = compute()
        torch.set_num_threads(3)
        assert all(map(torch.equal, alone, compute()))
    finally:
        torch.set_num_threads(threads)


def test_other_sizes_are_refused_before_anything_is_read(kernels: Kernels) -> None:
    case = {"query": draw(1, 1, 20), "own": draw(1, 2, 1, 20), "cache": draw(5, 2, 1, 20)}
    tile, own = torch.tensor([[0, 1, 0, 5]], dtype=torch.int32), torch.zeros((1, 1), dtype=torch.int32)
    with pytest.raises(NotImplementedError, match="20 numbers"):
        attend(kernels, case, tile, own)


def test_only_sizes_that_the_kernels_take_suit_and_without_a_library_torch_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Kernels.suit(torch.bfloat16, 64)
    assert not Kernels.suit(torch.float16, 64)
    assert not Kernels.suit(torch.float32, 72)
    assert not Kernels.suit(torch.float32, 512)
    monkeypatch.setattr(compiling, "usable_levels", list)
    assert kernels_module.find_kernels.__wrapped__() is None
