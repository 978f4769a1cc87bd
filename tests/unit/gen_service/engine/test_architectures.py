"""The architectures that the engine serves have the tokens of plain transformers."""

from pathlib import Path

import pytest

from tests.harness.random_model import save_random_model
from tests.unit.gen_service.engine.architectures import SERVED, SlowRunner
from tests.unit.gen_service.engine.asking import StartEngine, marking, together, tokens
from ttmark.gen_service.decoding.request import GenerationRequest, SamplingParams
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.model.loading import load_model
from ttmark.gen_service.engine.native import find_kernels
from ttmark.gen_service.engine.settings import EngineSettings

pytestmark = pytest.mark.long

# Qwen 3 MoE has all that Qwen 3 has beyond Llama.
GENERATED = (
    *("Llama", "Qwen 3 MoE", "Gemma 3", "gpt-oss", "DeepSeek V3"),
    pytest.param("Qwen 3", marks=pytest.mark.slow),
)
PROMPT = tuple(100 + 7 * place % 150 for place in range(30))


def request(index: int) -> GenerationRequest:
    """Of block size 1, 2, 3, 1, ...; prompts have a beginning in common."""
    sampling = SamplingParams(max_tokens=12, top_k=6, max_branches=6, seed=index, ignore_eos=True)
    return GenerationRequest(str(index), (*PROMPT[: 24 + index], index), sampling, marking(1 + index % 3))


async def answers(engine: Engine) -> list[list[int]]:
    return [tokens(deltas) for deltas in await together(engine, map(request, range(6)))]


@pytest.mark.parametrize("name", GENERATED)
async def test_tokens_equal_those_of_forwards_from_the_first_token(
    start_engine: StartEngine, tmp_path: Path, name: str
) -> None:
    """Side by side; from a warm prefix cache; and preempted, with commits that adopt their probes.

    In fp32 two ways of adding up differ by 1e-6: a draw between two tokens is not hit in 6 x 12 draws.
    """
    save_random_model(tmp_path / name, SERVED[name])
    slow = start_engine(tmp_path / name, prefix_cache=False)
    runner = SlowRunner(slow._runner.model)
    slow._runner.forward = runner.forward  # type: ignore[method-assign]
    slow._runner.move = runner.move  # type: ignore[method-assign]
    expected = await answers(slow)
    engine = start_engine(tmp_path / name, prefill_chunk=16)
    assert await answers(engine) == expected
    reused = engine.stats.reused_tokens
    assert await answers(engine) == expected
    assert engine.stats.reused_tokens > reused
    tight = start_engine(tmp_path / name, kv_tokens=100, reproducible=False)
    tight._stepper._scheduler._growth_tokens = 4
    assert await answers(tight) == expected
    assert tight.stats.preemptions > 0


@pytest.mark.parametrize("name", SERVED)
def test_a_model_of_each_architecture_is_served(tmp_path: Path, name: str) -> None:
    """Loading compares its logits, in chunks, commits and probes, with those of plain transformers."""
    save_random_model(tmp_path, SERVED[name])
    loaded = load_model(str(tmp_path), EngineSettings())
    assert loaded.acceleration.kernels is (find_kernels() is not None)


def test_heads_that_the_compiled_kernel_does_not_take_are_computed_without_it(tmp_path: Path) -> None:
    """Keys of 20 numbers, though the configuration's head size is that of the rotary part alone: 16."""
    config = SERVED["DeepSeek V3"].__class__(**SERVED["DeepSeek V3"].to_dict() | {"qk_nope_head_dim": 4})
    save_random_model(tmp_path, config)
    assert not load_model(str(tmp_path), EngineSettings()).acceleration.kernels
