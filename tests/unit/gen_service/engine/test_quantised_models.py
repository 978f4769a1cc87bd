"""Models with matrices of whole numbers: what they compute, when that is chosen, and what is refused."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import structlog
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, Qwen3Config

from tests.harness import distortion
from tests.harness.random_model import TOKENS, save_random_model
from tests.harness.same_bits import other_bits, reproducible_runner
from tests.unit.gen_service.engine.architectures import SERVED
from tests.unit.gen_service.engine.asking import StartEngine
from tests.unit.gen_service.engine.test_grouped_matrix import whole
from tests.unit.gen_service.engine.test_prefix_reuse import conversation
from tests.unit.gen_service.engine.test_reading import reading
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.model import transformers_model
from ttmark.gen_service.engine.model.attention import KvCache
from ttmark.gen_service.engine.model.grouping import BITS
from ttmark.gen_service.engine.model.loaded_model import LoadedModel
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.model.ragged_batch import Append
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.native import find_kernels
from ttmark.gen_service.engine.native.grouped import GROUP, GroupedMatrix
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark

pytestmark = pytest.mark.skipif(find_kernels() is None, reason="no compiler, or no such processor")
HOURS = (pytest.mark.slow, pytest.mark.timeout(7200))
VOCAB, KEYS, ALL_KEYS = TOKENS["vocab_size"], 200, 10_000
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
        monkeypatch.setattr(f"ttmark.gen_service.engine.model.{module}.find_kernels", lambda: None)
    for quantization, said in (("auto", []), ("int4", ["acceleration_unusable"])):
        with structlog.testing.capture_logs() as logs:
            loaded = load(tmp_path, dtype="bfloat16", quantization=quantization)
        assert loaded.acceleration.weights in ("plain", "packed")
        assert [line["event"] for line in logs] == said


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("bits", list(BITS))
def test_rows_have_the_same_bits_in_any_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bits: Literal["int4", "int8"], dtype: str
) -> None:
    """Of commits, probes and chunks; and it is seen where they have not."""
    save_random_model(tmp_path, SERVED["Llama"])
    runner = reproducible_runner(str(tmp_path), dtype, bits)
    every = runner.probe_once(64)
    for rows in range(1, 64):
        assert torch.equal(runner.probe_once(rows), every[:rows])
    differ, rows = other_bits(runner, VOCAB, 600)
    assert rows >= 600
    assert differ == 0
    multiply = GroupedMatrix.__call__

    def by_batch(self: GroupedMatrix, rows: torch.Tensor, *added: torch.Tensor) -> torch.Tensor:
        return multiply(self, rows, *added) * (1.01 if len(rows) > 24 else 1)

    monkeypatch.setattr(GroupedMatrix, "__call__", by_batch)
    assert other_bits(runner, VOCAB, 600)[0] > 100


@pytest.mark.parametrize("bits", list(BITS))
async def test_turns_and_readings_have_the_same_bits_however_they_are_cut(
    tmp_path: Path, start_engine: StartEngine, bits: str
) -> None:
    """From the prefix cache or computed, alone or beside others."""
    save_random_model(tmp_path, SERVED["Llama"])
    settings = {"dtype": "bfloat16", "quantization": bits, "prefill_chunk": 64}
    engine, plain = (start_engine(tmp_path, prefix_cache=cached, **settings) for cached in (True, False))
    answers, reused = await conversation(engine, 4)
    assert answers == (await conversation(plain, 4))[0]
    assert reused[-1] > 0
    requests = [reading(60 + 7 * seed, 1 + seed) for seed in range(6)]
    together = await asyncio.gather(*map(engine.read, requests))
    for request, found in zip(requests, together, strict=True):
        np.testing.assert_array_equal(found, await plain.read(request))


def own_distribution(loaded: LoadedModel) -> distortion.Model:
    """What a model of these matrices says next."""
    runner, prompt = loaded.acceleration.runner(loaded.model, KvCache(32)), distortion.PROMPT
    first = Append(0, 0, prompt, is_chunk=True, wants_logits=True)
    (last,) = runner.forward([first])[0]

    def logits_after(after: distortion.Tokens) -> torch.Tensor:
        if not after:
            return last
        piece = Append(0, len(prompt), after, is_chunk=False, wants_logits=True)
        return runner.forward([piece])[0][0]

    return distortion.Model(logits_after)


@pytest.fixture(name="grouped", scope="module", params=[*BITS])
def _grouped(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Engine, distortion.Model]]:
    """An engine over matrices of so many bits, and what its model says by itself."""
    folder = tmp_path_factory.mktemp("models")
    save_random_model(folder, SERVED["Llama"])
    settings = EngineSettings(device="cpu", dtype="bfloat16", quantization=request.param)
    engine = Engine.load(str(folder), settings)
    engine.start()
    yield engine, own_distribution(load_model(str(folder), settings))
    engine.stop(0)


@pytest.mark.parametrize(
    ("scheme", "block_size", "keys"),
    [
        *((scheme, 2, KEYS) for scheme in scheme_names()),
        *(("gumbel", size, KEYS) for size in (1, 3)),
        *(
            pytest.param(scheme, size, ALL_KEYS, marks=HOURS)
            for scheme in scheme_names()
            for size in (1, 2, 3)
        ),
    ],
)
async def test_marked_texts_over_random_keys_follow_the_models_own_distribution(
    grouped: tuple[Engine, distortion.Model], scheme: str, block_size: int, keys: int, record_result: Any
) -> None:
    engine, model = grouped
    found = await distortion.texts(engine, Watermark(scheme, block_size, block_size), keys)
    probability, cells = distortion.p_value(found, model, block_size)
    record_result(
        f"blocks of {block_size} over {keys:,} keys, {scheme}, matrices of {engine._runner.weights}",
        "as the model's own: chi-square p > 0.001",
        f"p = {probability:.3f} over {cells} cells",
    )
    assert cells > 2
    assert probability > distortion.WORST


async def test_those_of_a_single_key_do_not(grouped: tuple[Engine, distortion.Model]) -> None:
    """So that the test is known to be able to fail."""
    engine, model = grouped
    found = await distortion.texts(engine, Watermark("gumbel", 2, 2), KEYS, key=bytes(16))
    assert distortion.p_value(found, model, 2)[0] < distortion.WORST
