"""What is refused at load, with one line."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    BloomConfig,
    Gemma2Config,
    LlamaConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3NextConfig,
    StableLmConfig,
    T5Config,
)

from tests.harness.random_model import SMALL, TOKENS, byte_tokenizer, save_random_model
from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.model import autotune
from ttmark.gen_service.engine.settings import EngineSettings


def refusal(folder: Path | str, **settings: Any) -> str:
    with pytest.raises(ModelLoadError) as refused:
        Engine.load(str(folder), EngineSettings(**settings))
    line = str(refused.value)
    assert "\n" not in line
    return line


def only_config(folder: Path, config: PreTrainedConfig) -> Path:
    config.save_pretrained(folder)
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    return folder


def test_a_name_that_is_no_folder_and_not_on_the_hub_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert "unknown model 'nobody/nothing'" in refusal("nobody/nothing")


def test_a_folder_that_lacks_something_or_is_damaged_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    assert refusal(folder)
    (folder / "tokenizer.json").unlink()
    assert "no tokenizer.json" in refusal(folder)
    byte_tokenizer().save(str(tmp_path / "tokenizer.json"))
    assert "config.json" in refusal(tmp_path)
    assert refusal(only_config(tmp_path, LlamaConfig(**SMALL)))  # without weights


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (T5Config(d_model=32, d_kv=8, d_ff=32, num_layers=1, num_heads=2), "encoder-decoder"),
        (Qwen3NextConfig(**SMALL, head_dim=16), "linear_attention"),
        (
            LlamaConfig(**SMALL, rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0}),
            "dynamic rotary",
        ),
    ],
    ids=["encoder-decoder", "linear attention", "rope that depends on the batch"],
)
def test_an_architecture_that_cannot_branch_is_refused_by_its_configuration(
    config: PreTrainedConfig, reason: str, tmp_path: Path
) -> None:
    assert reason in refusal(only_config(tmp_path, config))


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        (Gemma2Config(**SMALL, head_dim=16), ""),  # soft capping
        (BloomConfig(**TOKENS, hidden_size=64, n_layer=2, n_head=4), "attends in a way"),
        (StableLmConfig(**SMALL), "not told what a pass computes"),
    ],
)
def test_a_model_that_does_not_compute_as_the_engine_does_is_refused(
    tmp_path: Path, config: PreTrainedConfig, reason: str
) -> None:
    save_random_model(tmp_path, config)
    assert reason in refusal(tmp_path)


def test_weights_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    save_random_model(tmp_path, Qwen2Config(**SMALL, initializer_range=float("inf")))
    assert "not finite" in refusal(tmp_path)


def test_an_unknown_dtype_is_refused_and_bfloat16_runs(tiny_model: Path) -> None:
    assert "float7" in refusal(tiny_model, dtype="float7")
    engine = Engine.load(str(tiny_model), EngineSettings(dtype="bfloat16"))
    assert next(engine._runner.model.parameters()).dtype == torch.bfloat16


def test_what_requests_need_to_know_is_read_from_the_model(tiny_model: Path) -> None:
    engine = Engine.load(str(tiny_model), EngineSettings(context_length=100, kv_tokens=90))
    assert (engine.model_id, engine.vocab_size) == ("tiny-llama", 300)
    assert engine.eos_token_ids == (0,)
    assert (engine.context_length, engine.kv_tokens) == (90, 90)
    roomy = Engine.load(str(tiny_model), EngineSettings(context_length=100, kv_tokens=200))
    assert (roomy.context_length, roomy.kv_tokens) == (100, 200)
    assert Engine.load(str(tiny_model), EngineSettings(model_id="demo")).model_id == "demo"


def test_the_cache_is_sized_from_the_free_memory_and_from_what_can_be_used(tiny_model: Path) -> None:
    engine = Engine.load(str(tiny_model), EngineSettings(max_sequences=3))
    assert engine.kv_tokens == 3 * 256


@pytest.mark.parametrize("faster", [1, 2])
def test_the_number_of_threads_is_chosen_by_measurement(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, faster: int
) -> None:
    def seconds_of(run: object, rows: int) -> float:
        return 1.0 if torch.get_num_threads() == faster else 2.0

    monkeypatch.setattr(autotune, "seconds_of", seconds_of)
    monkeypatch.setattr(autotune, "own_threads", lambda: 2)  # kept from the first model of a process
    try:
        Engine.load(str(tiny_model), EngineSettings(threads="auto"))
        assert torch.get_num_threads() == faster
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_fixed_number_of_threads_is_not_measured(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.delattr(autotune, "seconds_of")
    try:
        Engine.load(str(tiny_model), EngineSettings(threads=threads))
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(1)


def test_the_dtype_is_chosen_by_measurement_without_harm_to_the_weights(tiny_model: Path) -> None:
    model = Engine.load(str(tiny_model), EngineSettings(dtype="auto"))._runner.model
    own = Engine.load(str(tiny_model), EngineSettings(dtype=str(model.dtype).removeprefix("torch.")))
    for chosen, expected in zip(model.parameters(), own._runner.model.parameters(), strict=True):
        assert torch.equal(chosen, expected)
    assert model.model.rotary_emb.inv_freq.dtype == torch.float32
