"""The real vLLM over small models with random weights, beside the embedded engine; see `make test-vllm`."""

import asyncio
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import DeepseekV3Config, Gemma3TextConfig, LlamaConfig

from tests.features.vllm.installed.every_kind import Maker
from tests.harness.random_model import save_random_model
from ttmark.gen_service.decoding.request import Delta, GenerationRequest
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.gen_service.features.vllm.service import VLLM_ENVIRONMENT
from ttmark.shared.tokenization import TextTokenizer

for _name, _value in (VLLM_ENVIRONMENT | {"VLLM_CPU_KVCACHE_SPACE": "1"}).items():
    os.environ.setdefault(_name, _value)

CONTEXT = 260
SHAPE: dict[str, Any] = {
    "vocab_size": 300, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "max_position_embeddings": CONTEXT,
    "initializer_range": 0.3, "bos_token_id": None, "eos_token_id": 0, "pad_token_id": None,
}  # fmt: skip
LLAMA = LlamaConfig(**SHAPE)
GEMMA = Gemma3TextConfig(
    **SHAPE | {"num_hidden_layers": 4, "initializer_range": 0.1},
    sliding_window=40,
    layer_types=["sliding_attention", "full_attention", "sliding_attention", "full_attention"],
    query_pre_attn_scalar=32,
)
UNTIED = SHAPE | {"tie_word_embeddings": False}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 64}
DEEPSEEK = DeepseekV3Config(
    **{name: value for name, value in UNTIED.items() if name != "head_dim"} | {"num_key_value_heads": 4},
    **EXPERTS,
    kv_lora_rank=512,
    q_lora_rank=64,
    qk_nope_head_dim=32,
    qk_rope_head_dim=64,
    v_head_dim=32,
    n_routed_experts=8,
    n_group=4,
    topk_group=2,
    first_k_dense_replace=1,
    topk_method="noaux_tc",  # as in its own configuration; vLLM asks for it
    scoring_func="sigmoid",
)


@dataclass(frozen=True)
class Answer:
    """A completion as its caller got it."""

    tokens: tuple[int, ...]
    text: str
    finish_reason: str | None
    report: Any
    logprobs: tuple[Any, ...]
    reused: int

    @property
    def said(self) -> tuple[Any, ...]:
        """What must be the same on every engine."""
        return self.tokens, self.text, self.finish_reason, self.report


async def complete(engine: Any, request: GenerationRequest) -> Answer:
    deltas: list[Delta] = [delta async for delta in engine.generate(request)]
    return Answer(
        tuple(token for delta in deltas for token in delta.token_ids),
        "".join(delta.text for delta in deltas),
        deltas[-1].finish_reason,
        deltas[-1].report,
        tuple(entry for delta in deltas for entry in delta.logprobs or ()),
        deltas[-1].reused_tokens,
    )


def complete_all(engine: Any, requests: Sequence[GenerationRequest], *, failures: bool = False) -> list[Any]:
    """All at once; with `failures`, what a request failed with stands in its place."""

    async def together() -> list[Any]:
        asked = (complete(engine, request) for request in requests)
        return await asyncio.gather(*asked, return_exceptions=failures)

    return asyncio.run(together())


def ask(engine: Any, function: Callable[[Any], Any]) -> Any:
    """Calls a function in the first worker; needs VLLM_ALLOW_INSECURE_SERIALIZATION."""
    host = engine._host
    call = host._llm.collective_rpc(function)
    return asyncio.run_coroutine_threadsafe(call, host._loop).result()[0]


def nothing_left(engine: Any, seconds: float = 20.0) -> bool:
    """Whether neither side holds a request any more, soon: vLLM hears of an end one step later."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not engine._host.jobs and not any(engine._host.call("ttmark_size")):
            return True
        time.sleep(0.2)
    return False


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tiny-llama"
    save_random_model(folder, LLAMA)
    return folder


@pytest.fixture(scope="session")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Layers of two kinds, so two KV groups."""
    folder = tmp_path_factory.mktemp("models") / "tiny-gemma"
    save_random_model(folder, GEMMA)
    return folder


@pytest.fixture(scope="session")
def embedded(llama: Path) -> Iterator[Engine]:
    with embedded_engine(llama) as running:
        yield running


@pytest.fixture(scope="session")
def maker(llama: Path) -> Maker:
    return Maker(TextTokenizer.load(llama), (0,))


@contextmanager
def embedded_engine(folder: Path) -> Iterator[Engine]:
    settings = EngineSettings(device="cpu", threads=1, max_branches=8, max_waiting=512, context_length=256)
    engine = Engine.load(str(folder), settings)
    engine.start()
    yield engine
    engine.stop(0)


def load_vllm(folder: Path, arguments: dict[str, Any] | None = None, **settings: Any) -> Any:
    from ttmark.gen_service.features.vllm.vllm_engine import VllmEngine
    from ttmark.gen_service.features.vllm.vllm_settings import VllmSettings

    small = {"block_size": 32, "max_model_len": CONTEXT, "max_num_batched_tokens": 512}
    chosen = {"dtype": "float32", "max_sequences": 16, "max_waiting": 512} | settings
    engine = VllmEngine.load(str(folder), VllmSettings(arguments=small | (arguments or {}), **chosen))
    engine.start()
    return engine


@pytest.fixture(scope="session")
def engine(llama: Path) -> Iterator[Any]:
    """A cache that 16 sequences do not fit into, and fewer scratch blocks than a step needs."""
    running = load_vllm(llama, {"num_gpu_blocks_override": 24}, scratch_blocks=40)
    yield running
    assert nothing_left(running)
    running.stop(0)


@pytest.fixture
def started() -> Iterator[Callable[..., Any]]:
    """Starts further engines, and stops them at the end of the test."""
    engines: list[Any] = []

    def start(*arguments: Any, **settings: Any) -> Any:
        engines.append(load_vllm(*arguments, **settings))
        return engines[-1]

    yield start
    for each in engines:
        each.stop(0)
