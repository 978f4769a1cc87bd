"""Matrices that oneDNN has packed multiply as the plain ones do."""

from pathlib import Path

import pytest
import structlog
import torch

from ttmark.gen_service.engine.model import transformers_model
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.llama import Matrix
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.model.transformers_model import can_pack
from ttmark.gen_service.engine.settings import EngineSettings

ROUNDING = {torch.float32: 2e-6, torch.bfloat16: 1e-2}


def needs_packing(dtype: torch.dtype) -> None:
    if not can_pack(dtype):
        pytest.skip(f"oneDNN packs no {dtype} on this processor")


@pytest.mark.parametrize("dtype", list(ROUNDING), ids=str)
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 15, 16, 33, 128])
@pytest.mark.parametrize("packs", [True, False])
def test_a_product_is_the_product(dtype: torch.dtype, rows: int, packs: bool) -> None:
    """Packed or not; many rows in bf16 that is not packed are multiplied in float32."""
    torch.manual_seed(rows)
    plain = (torch.randn(96, 160) / 10).to(dtype)
    inputs, residual = torch.randn(rows, 96).to(dtype), torch.randn(rows, 160).to(dtype)
    if packs:
        needs_packing(dtype)
        matrix = Matrix.pack(plain)
        assert matrix.packed is not None
    else:
        matrix = Matrix(plain)
        in_float32 = torch.equal(matrix(inputs), (inputs.float() @ plain.float()).to(dtype))
        assert in_float32 or rows < 16
    expected = inputs.double() @ plain.double()
    for made, exact in (
        (matrix(inputs), expected),
        (matrix.added_to(residual, inputs), residual.double() + expected),
    ):
        assert made.dtype == dtype
        assert float((made.double() - exact).abs().max()) <= ROUNDING[dtype] * float(exact.abs().max())


def test_rows_that_are_part_of_wider_ones_are_multiplied_too() -> None:
    wide = torch.randn(5, 200)
    plain = torch.randn(100, 32)
    packed = Matrix.pack(plain)
    assert torch.allclose(packed(wide[:, 100:]), wide[:, 100:] @ plain, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_model_is_packed_and_its_matrices_are_made_once(tiny_model: Path, dtype: str) -> None:
    needs_packing(getattr(torch, dtype))
    loaded = load_model(str(tiny_model), EngineSettings(device="cpu", dtype=dtype))
    assert loaded.acceleration.weights == "packed"
    runners = [loaded.acceleration.runner(loaded.model, KvCache(8)) for _ in range(2)]
    assert runners[0].fused is runners[1].fused


def test_a_dtype_that_is_not_packed_here_is_served_without_a_word(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert can_pack(torch.float32)
    monkeypatch.setattr(transformers_model, "can_pack", lambda dtype: dtype != torch.bfloat16)
    with structlog.testing.capture_logs() as logs:
        loaded = load_model(str(tiny_model), EngineSettings(device="cpu", dtype="bfloat16"))
    assert loaded.acceleration.weights == "plain"
    assert logs == []


def test_a_packed_model_gives_the_logits_of_a_plain_one(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = EngineSettings(device="cpu", dtype="float32")
    logits = []
    for free in (2**40, 0):
        monkeypatch.setattr(transformers_model, "available_memory", lambda free=free: free)
        loaded = load_model(str(tiny_model), settings)
        assert (loaded.acceleration.weights == "packed") == bool(free), "a second copy needs memory"
        logits.append(loaded.acceleration.runner(loaded.model, KvCache(8)).probe_once(7))
    assert float((logits[0] - logits[1]).abs().max()) <= 1e-5
