"""Models with matrices of whole numbers: what they compute, when that is chosen, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
import structlog
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

from tests.harness.random_model import save_random_model
from tests.unit.engine.architectures import SERVED
from tests.unit.engine.test_grouped_matrix import whole
from ttmark.gen_service.engine import EngineSettings, transformers_model
from ttmark.gen_service.engine.attention import KvCache
from ttmark.gen_service.engine.loaded_model import LoadedModel
from ttmark.gen_service.engine.loading import load_model
from ttmark.gen_service.engine.native import find_kernels
from ttmark.gen_service.engine.native.grouped import BITS, GROUP, GroupedMatrix
from ttmark.gen_service.engine.runner import Runner

pytestmark = pytest.mark.skipif(find_kernels() is None, reason="no compiler, or no such processor")
# The inputs of one layer come in no groups: it stays as it is.
ODD = Qwen3Config(**{**SERVED["Qwen 3"].to_dict(), "intermediate_size": 72})
TIED = LlamaConfig(**{**SERVED["Llama"].to_dict(), "tie_word_embeddings": True})


def load(folder: Path, **settings: Any) -> LoadedModel:
    return load_model(str(folder), EngineSettings(**{"device": "cpu", "dtype": "float32", **settings}))


def logits(loaded: LoadedModel) -> torch.Tensor:
    runner = loaded.acceleration.runner(loaded.model, KvCache(8))
    return torch.cat([runner.probe_once(rows) for rows in (1, 7, 20)]).float()


@torch.no_grad()
def dequantised(folder: Path, bits: int) -> torch.Tensor:
    """Logits by torch alone, over matrices with the values of such a model."""
    kernels = find_kernels()
    assert kernels is not None
    model = transformers_model._transformers_module("", folder, "float32", "cpu")
    head = model.get_output_embeddings()
    for linear in (each for each in model.modules() if isinstance(each, torch.nn.Linear)):
        if linear.weight.shape[1] % GROUP == 0:
            matrix = GroupedMatrix(linear.weight, 8 if linear is head else bits, kernels)
            linear.weight.copy_(matrix.values(torch.arange(matrix.outs)))
    runner = Runner(model, KvCache(8))
    return torch.cat([runner.probe_once(rows) for rows in (1, 7, 20)])


def distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).norm() / other.norm())


@pytest.mark.parametrize("bits", list(BITS))
@pytest.mark.parametrize("name", ["Llama", "Qwen 2", "Qwen 3", "Gemma 3", "Phi 3", "odd", "tied"])
def test_a_model_computes_with_the_values_that_its_numbers_stand_for(
    tmp_path: Path, name: str, bits: str
) -> None:
    """What is left is that rows are whole numbers too: a hundredth."""
    save_random_model(tmp_path, {"tied": TIED, "odd": ODD}.get(name) or SERVED[name])
    loaded = load(tmp_path, quantization=bits)
    found, fused = logits(loaded), name in ("Llama", "Qwen 2", "tied")
    assert loaded.acceleration.weights == (bits if fused else "plain")
    exact, before = dequantised(tmp_path, BITS[bits]), logits(load(tmp_path, quantization="none"))
    assert distance(found, exact) < 0.03
    assert distance(found, exact) < distance(exact, before) / (3 if bits == "int4" else 0.1)


def save_of_four_bits(folder: Path) -> None:
    """A model as it comes from a file of four bits, the embedding in eight."""
    save_random_model(folder, TIED)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        for linear in (each for each in model.modules() if isinstance(each, torch.nn.Linear)):
            tied = linear is model.get_output_embeddings()
            linear.weight.copy_(whole(8 if tied else 4, *linear.weight.shape, torch.float32) * 8)
    model.to(torch.bfloat16).save_pretrained(folder)


def test_numbers_of_four_bits_are_found_out_and_keep_their_values(tmp_path: Path) -> None:
    save_of_four_bits(tmp_path)
    settings = {"dtype": "auto", "threads": 1}
    loaded = load(tmp_path, **settings)
    assert loaded.acceleration.weights == "int4"
    assert loaded.model.dtype == torch.bfloat16
    plain = load(tmp_path, dtype="bfloat16", quantization="none")
    assert plain.acceleration.weights != "int4"
    assert distance(logits(loaded), logits(plain)) < 0.03
    kept = [load(tmp_path, **settings, choices=tmp_path / "choices.json") for _ in range(2)]
    assert [type(each.model).__name__ for each in kept] == ["PlainLlama"] * 2
    for each in kept:
        assert torch.equal(logits(each), logits(loaded))


@pytest.mark.parametrize("quantization", ["auto", "none"])
def test_other_numbers_stay_as_they_are(tmp_path: Path, quantization: str) -> None:
    save_random_model(tmp_path, SERVED["Llama"])
    with structlog.testing.capture_logs() as logs:
        loaded = load(tmp_path, dtype="bfloat16", quantization=quantization)
    assert loaded.acceleration.weights in ("plain", "packed")
    assert logs == []


def test_where_no_kernels_are_compiled_matrices_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for by a setting is said."""
    save_of_four_bits(tmp_path)
    for module in ("transformers_model", "loaded_model"):
        monkeypatch.setattr(f"ttmark.gen_service.engine.{module}.find_kernels", lambda: None)
    for quantization, said in (("auto", []), ("int4", ["acceleration_unusable"])):
        with structlog.testing.capture_logs() as logs:
            loaded = load(tmp_path, dtype="bfloat16", quantization=quantization)
        assert loaded.acceleration.weights in ("plain", "packed")
        assert [line["event"] for line in logs] == said


def test_any_number_of_rows_gives_the_same_bits(tmp_path: Path) -> None:
    save_random_model(tmp_path, SERVED["Llama"])
    loaded = load(tmp_path, quantization="int4")
    runner = loaded.acceleration.runner(loaded.model, KvCache(8))
    runner.measure_row_counts()
    every = runner.probe_once(64)
    for rows in range(1, 64):
        assert torch.equal(runner.probe_once(rows), every[:rows])
