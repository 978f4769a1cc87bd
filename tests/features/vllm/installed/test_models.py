"""Models and arguments that take an engine of their own: tokens are those of the embedded engine."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers import GptOssConfig, PreTrainedConfig, Qwen3Config, Qwen3MoeConfig

from tests.features.vllm.installed.conftest import (
    DEEPSEEK,
    EXPERTS,
    UNTIED,
    complete_all,
    embedded_engine,
    load_vllm,
    nothing_left,
)
from tests.features.vllm.installed.every_kind import Maker
from tests.harness.random_model import save_random_model
from ttmark.gen_service.decoding.request import GenerationRequest
from ttmark.gen_service.engine.errors import ModelLoadError
from ttmark.gen_service.engine.loop.engine import Engine

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
PROMPT = "A walk by the sea, on a windy morning in March. The first thing that we saw was"


def of_both(folder: Path, running: Any, requests: Callable[[Maker], list[GenerationRequest]]) -> list[Any]:
    """The answers of a running engine, which are those of an embedded one over the same folder."""
    with embedded_engine(folder) as embedded:
        asked = requests(Maker(embedded.tokenizer, tuple(embedded.eos_token_ids)))
        ours, theirs = complete_all(embedded, asked), complete_all(running, asked)
    assert [n for n, each in enumerate(theirs) if each.said != ours[n].said] == []
    return theirs


def of_every_kind(maker: Maker) -> list[GenerationRequest]:
    return [maker.request(number) for number in range(24)]


@pytest.mark.parametrize("name", MODELS)
def test_small_random_weights_in_the_shapes_of_what_people_serve(
    name: str, tmp_path: Path, started: Callable[..., Any]
) -> None:
    save_random_model(tmp_path / name, MODELS[name])
    running = started(tmp_path / name, {"num_gpu_blocks_override": 96}, scratch_blocks=40)
    answers = of_both(tmp_path / name, running, of_every_kind)
    assert len({token for each in answers for token in each.tokens}) > 100  # not one token again and again


def test_two_kv_groups_one_with_a_sliding_window(gemma: Path, started: Callable[..., Any]) -> None:
    running = started(gemma, {"num_gpu_blocks_override": 48}, scratch_blocks=40)
    assert len(running._host._config.model_config.hf_text_config.layer_types) == 4
    of_both(gemma, running, of_every_kind)


def test_a_real_language_model(smollm2_folder: Path, started: Callable[..., Any]) -> None:
    def asked(maker: Maker) -> list[GenerationRequest]:
        """r = 0 to 3, under each scheme."""
        made = [maker.request(number, tokens=20) for number in range(16)]
        free = [replace(each.sampling, stop=(), ignore_eos=True) for each in made]
        words = tuple(maker.tokenizer.encode(PROMPT))
        return [
            replace(each, prompt_ids=words[: 4 + n], sampling=free[n], grammar=None)
            for n, each in enumerate(made)
        ]

    answers = of_both(smollm2_folder, started(smollm2_folder, {"num_gpu_blocks_override": 96}), asked)
    assert {each.report.watermarked_blocks > 0 for n, each in enumerate(answers) if n % 4} == {True}


def test_two_tensor_parallel_ranks_are_as_one(
    llama: Path, embedded: Engine, maker: Maker, started: Callable[..., Any]
) -> None:
    running = started(llama, {"tensor_parallel_size": 2})
    asked = of_every_kind(maker)
    unseeded = replace(asked[2], sampling=replace(asked[2].sampling, seed=None))
    ours, (*theirs, last) = complete_all(embedded, asked), complete_all(running, [*asked, unseeded])
    assert [each.said for each in theirs] == [each.said for each in ours]
    assert last.finish_reason is not None
    assert nothing_left(running)


def test_latent_attention_on_a_cpu_is_refused_in_one_line(tmp_path: Path) -> None:
    save_random_model(tmp_path / "deepseek", DEEPSEEK)
    with pytest.raises(
        ModelLoadError, match=r"^deepseek: latent attention \(DeepSeek\) on a CPU is not supported on vLLM$"
    ):
        load_vllm(tmp_path / "deepseek")
