"""A generator without a model, which does on demand what an engine seldom does."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import numpy as np

from tests.harness.byte_tokenizers import bytes_alone
from ttmark.gen_service.decoding.request import (
    Delta,
    GenerationRequest,
    MarkReport,
    ReadingRequest,
    TokenLogprob,
)
from ttmark.gen_service.engine.errors import Overloaded
from ttmark.shared.tokenization import TextTokenizer

MODEL = "tiny"
CONTEXT_LENGTH = 256
END_OF_TEXT = "</s>"


def byte_tokenizer() -> TextTokenizer:
    """One token per byte, and an end of text."""
    backend = bytes_alone(more=[END_OF_TEXT])
    backend.add_special_tokens([END_OF_TEXT])
    return TextTokenizer(backend)


class FakeGenerator:
    """Writes random letters two at a time; a test may make it refuse, fail, stall or count."""

    model_id = MODEL
    context_length = CONTEXT_LENGTH

    def __init__(self) -> None:
        self._prompts: set[tuple[int, ...]] = set()
        self.tokenizer = byte_tokenizer()
        self.vocab_size = self.tokenizer.vocab_size
        self.eos_token_ids = frozenset({self.vocab_size - 1})
        self.start_token_id: int | None = self.vocab_size - 1
        self.reset()

    def reset(self) -> None:
        """Back to good behaviour."""
        self.ready = self.alive = True
        self.refusal: Exception | None = None
        self.failure: Exception | None = None
        self.pause = 0.0
        self.running = 0
        self.cancelled = 0
        self.requests: list[GenerationRequest] = []
        self.readings: list[ReadingRequest] = []

    def check_queue(self, tenant: str) -> None:
        if isinstance(self.refusal, Overloaded):
            raise self.refusal

    def generate(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        if self.refusal is not None:
            raise self.refusal
        self.requests.append(request)
        return self._deltas(request)

    async def read(self, request: ReadingRequest) -> np.ndarray:
        """Every token as one of two."""
        if self.refusal is not None:
            raise self.refusal
        self.readings.append(request)
        self.running += 1
        finished = False
        try:
            await asyncio.sleep(self.pause)
            if self.failure is not None:
                raise self.failure
            finished = True
            return np.full(len(request.text_ids), -np.log(2))
        finally:
            self.running -= 1
            self.cancelled += not finished

    async def _deltas(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        self.running += 1
        finished = False
        try:
            for number, delta in enumerate(self._completion(request)):
                await asyncio.sleep(self.pause)
                if self.failure is not None and number == 1:
                    raise self.failure
                finished = delta.finish_reason is not None
                yield delta
        finally:
            self.running -= 1
            self.cancelled += not finished

    def _completion(self, request: GenerationRequest) -> list[Delta]:
        sampling = request.sampling
        letters = random.Random(sampling.seed)
        text, deltas, finish_reason = "", list[Delta](), None
        while finish_reason is None:
            room = min(2, sampling.max_tokens - len(text))
            piece = "".join(letters.choices("abcdefgh ", k=room))
            whole = text + piece
            finish_reason = "length" if len(whole) == sampling.max_tokens else None
            token_ids = self.tokenizer.encode(piece)
            ends = [end for stop in sampling.stop if (end := whole.find(stop)) >= 0]
            if ends:
                piece, finish_reason = whole[len(text) : min(ends)], "stop"
            text = whole
            deltas.append(self._delta(request, token_ids, piece, finish_reason, len(text)))
        return deltas

    def _delta(
        self, request: GenerationRequest, token_ids: list[int], text: str, finish_reason: Any, length: int
    ) -> Delta:
        alternatives = request.sampling.logprobs
        entries = None
        if alternatives is not None:
            top = tuple((token_id, -1.0 - token_id) for token_id in range(alternatives))
            entries = tuple(TokenLogprob(token_id, -2.0, top) for token_id in token_ids)
        return Delta(
            token_ids=tuple(token_ids),
            text=text,
            finish_reason=finish_reason,
            logprobs=entries,
            report=self._report(request, -(-length // 2)) if finish_reason else None,
            reused_tokens=self._reused(request) if finish_reason else 0,
        )

    def _reused(self, request: GenerationRequest) -> int:
        """All but the last token of a prompt that was seen before."""
        known = request.prompt_ids in self._prompts
        self._prompts.add(request.prompt_ids)
        return len(request.prompt_ids) - 1 if known else 0

    def _report(self, request: GenerationRequest, blocks: int) -> MarkReport:
        if request.marking is None:
            return MarkReport(blocks, 0, {str(request.unmarked_reason): blocks})
        warm_up = min(blocks, request.marking.watermark.warmup_blocks)
        return MarkReport(blocks, blocks - warm_up, {"warm_up": warm_up} if warm_up else {})
