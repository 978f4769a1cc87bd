"""A text that the model reads instead of writing it, to the scheduler a sequence that is all prompt."""

from dataclasses import replace

import torch

from ttmark.gen_service.decoding.request import Delta, GenerationRequest, ReadingRequest, SamplingParams
from ttmark.gen_service.decoding.text_logprobs import ROWS, TextLogprobs
from ttmark.gen_service.engine.cached_sequence import CachedSequence
from ttmark.gen_service.engine.job import Work
from ttmark.gen_service.engine.ragged import Append, Probe
from ttmark.shared.tokenization import TextTokenizer


class TextReading(CachedSequence):
    """A sequence that is all prompt to the scheduler, and wants the logits of every row of the text.

    Attributes:
        logprobs: of the text's tokens, as far as it is read.
    """

    def __init__(
        self, request: ReadingRequest, tokenizer: TextTokenizer, deadline: float, prompt_cut: int
    ) -> None:
        # What the model says after the last token nobody asks for.
        known = (*request.prompt_ids, *request.text_ids[:-1])
        nothing_more = SamplingParams(max_tokens=1)
        super().__init__(
            GenerationRequest(request.request_id, known, nothing_more, marking=None, tenant=request.tenant),
            tokenizer,
            (),
            deadline,
            prompt_cut,
        )
        self.logprobs = TextLogprobs(request)
        self._before = len(request.prompt_ids)

    @property
    def most_reused(self) -> int:
        """See `Job`: the prompt but for its last token, whose logits say what comes first."""
        return max(0, self._before - 1)

    def next_work(self, chunk: int, limit: int) -> Work:
        """A chunk of the prompt, or fewer rows once they have logits."""
        work = super().next_work(chunk, limit)
        return work if work.cached < self._before else super().next_work(min(chunk, ROWS), limit)

    def pieces(self, cached: int) -> list[Append | Probe]:
        """What a pass computes of it, after which `cached` tokens are in the cache."""
        pieces = super().pieces(cached)
        if cached < self._before:
            return pieces
        return [
            replace(piece, wants_logits=True, every_row=True) if isinstance(piece, Append) else piece
            for piece in pieces
        ]

    def take(self, logits: torch.Tensor) -> Delta | None:
        """Reads the `logits` [rows, vocab] of the last tokens that were cached; an ending after the last.

        Raises:
            SequenceFailed: they are not finite.
        """
        # The row of a token says what comes after it.
        first = self.cached - len(logits) + 1 - self._before
        self.logprobs.take(max(0, first), logits[max(0, -first) :])
        return None if self.in_prompt else Delta(token_ids=(), text="", finish_reason="stop")
