"""Requests to an engine, and what comes back."""

import asyncio
from collections.abc import Callable
from typing import Any

from ttmark.gen_service.engine import Delta, Engine, GenerationRequest, Marking, SamplingParams
from ttmark.shared.watermark import Watermark

KEY = bytes(range(16))
StartEngine = Callable[..., Engine]


def marking(block_size: int = 2, watermark: Watermark | None = None) -> Marking:
    return Marking("key", 1, "profile", watermark or Watermark("synthid", block_size), KEY)


def ask(
    engine: Engine, prompt: str = "The quick brown fox", mark: Marking | None = None, **params: Any
) -> Any:
    values = {"max_tokens": 24, "temperature": 1.0, "top_k": 30, "seed": 1, "ignore_eos": True, **params}
    return GenerationRequest("id", tuple(engine.tokenizer.encode(prompt)), SamplingParams(**values), mark)


async def collect(engine: Engine, request: GenerationRequest) -> list[Delta]:
    return [delta async for delta in engine.generate(request)]


def tokens(deltas: list[Delta]) -> list[int]:
    return [token for delta in deltas for token in delta.token_ids]


def only_ascii(engine: Engine) -> dict[int, float]:
    """A bias that leaves the tokens that are ASCII text by themselves."""
    return {i: -1e4 for i in range(engine.vocab_size) if not engine.tokenizer.decode([i]).strip().isascii()}


def text(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas)


async def until(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    for _ in range(int(seconds / 0.005)):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not come to that")
