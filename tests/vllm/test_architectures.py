"""Small random weights in the shapes of what people serve: tokens are those of the embedded engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import GptOssConfig, PreTrainedConfig, Qwen3Config, Qwen3MoeConfig

from tests.harness.random_model import save_random_model
from tests.vllm.conftest import DEEPSEEK, EXPERTS, UNTIED, complete_all, embedded_engine, load_vllm
from tests.vllm.every_kind import Maker
from ttmark.gen_service.engine import ModelLoadError

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

MODELS: dict[str, PreTrainedConfig] = {
    "qwen3": Qwen3Config(**UNTIED),
    "qwen3-moe": Qwen3MoeConfig(**UNTIED, **EXPERTS, num_experts=4),
    "gpt-oss": GptOssConfig(
        **UNTIED,
        sliding_window=40,
        layer_types=["sliding_attention", "full_attention"],
        num_local_experts=4,
        num_experts_per_tok=2,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_tokens_are_those_of_the_embedded_engine(
    name: str, tmp_path: Path, started: Callable[..., Any]
) -> None:
    save_random_model(tmp_path / name, MODELS[name])
    running = started(tmp_path / name, {"num_gpu_blocks_override": 96}, scratch_blocks=40)
    for embedded in embedded_engine(tmp_path / name):
        maker = Maker(embedded.tokenizer, tuple(embedded.eos_token_ids))
        asked = [maker.request(number) for number in range(24)]
        ours, theirs = complete_all(embedded, asked), complete_all(running, asked)
    assert [n for n, each in enumerate(theirs) if each.said != ours[n].said] == []
    assert len({token for each in ours for token in each.tokens}) > 100  # not one token again and again


def test_latent_attention_on_a_cpu_is_refused_in_one_line(tmp_path: Path) -> None:
    save_random_model(tmp_path / "deepseek", DEEPSEEK)
    with pytest.raises(
        ModelLoadError, match=r"^deepseek: latent attention \(DeepSeek\) on a CPU is not supported on vLLM$"
    ):
        load_vllm(tmp_path / "deepseek")
