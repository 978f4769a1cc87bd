"""Requests to an engine, and what comes back."""

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ttmark.gen_service.decoding.request import Delta, GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.engine.loop.cached_sequence import CachedSequence
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.loop.stream import Mailbox
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.watermark.schemes.watermark import Watermark

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


async def together(engine: Engine, requests: Iterable[GenerationRequest]) -> list[list[Delta]]:
    return await asyncio.gather(*(collect(engine, request) for request in requests))


def tokens(deltas: list[Delta]) -> list[int]:
    return [token for delta in deltas for token in delta.token_ids]


def text(deltas: list[Delta]) -> str:
    return "".join(delta.text for delta in deltas)


class Faulty(Watermark):
    """A watermark that fails, or gives no probabilities, from the n-th block on."""

    def __init__(self, fuse: int, *, silent: bool) -> None:
        super().__init__("synthid", 2)
        self._fuse, self._silent = fuse, silent
        # Unlike any other's, so that no two of them are computed together and each counts its own blocks.
        self.parameters = {**self.parameters, "fault": id(self)}

    def reweight(self, keys: Any, contexts: Any, blocks: Any, probs: Any, offsets: Any) -> Any:
        self._fuse -= 1
        if self._fuse >= 0:
            return super().reweight(keys, contexts, blocks, probs, offsets)
        if self._silent:
            return np.full_like(probs, np.nan)
        raise RuntimeError("injected")


class SteppedByHand:
    """An engine whose steps a test makes."""

    def __init__(self, folder: Path) -> None:
        self.engine = Engine.load(str(folder), EngineSettings(max_sequences=32, max_branches=8))
        self.stepper = self.engine._stepper

    def sequence(self, request: GenerationRequest) -> CachedSequence:
        return CachedSequence(request, self.engine.tokenizer, self.engine.eos_token_ids)

    def submit(self, *sequences: Any) -> None:
        """Makes a step in which the sequences come in."""
        self.stepper.step([(each, Mailbox(lambda: None)) for each in sequences])

    def steps_until_the_end_of(self, sequence: CachedSequence) -> int:
        """How many more steps it takes."""
        steps = 0
        while sequence.finish_reason is None:
            self.stepper.step([])
            steps += 1
        return steps
