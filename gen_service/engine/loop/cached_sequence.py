"""A sequence with its part of the KV cache: a completion, or a text that is read."""

import math
from bisect import bisect_right
from collections.abc import Sequence as Tokens
from dataclasses import replace
from itertools import pairwise

import numpy as np
import torch

from ttmark.gen_service.decoding.filtered_tokens import Ints
from ttmark.gen_service.decoding.logprobs import ROWS, TextLogprobs
from ttmark.gen_service.decoding.request import (
    Delta,
    GenerationRequest,
    ReadingRequest,
    SamplingParams,
    SequenceFailed,
)
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.gen_service.decoding.tandem_block import TandemBlock
from ttmark.gen_service.engine.model.ragged_batch import Append, Branches, Probe
from ttmark.gen_service.engine.scheduling.schedulable import Extent, Work
from ttmark.shared.tokenization import TextTokenizer

PROMPT_CUT = 32
"""Tokens of a prompt that attend in one piece where bits matter; the grain in which prompts are reused."""


class CachedSequence(Sequence):
    """One completion in the engine, a `Schedulable`, whose thread alone touches it, but for `cancelled`.

    A prompt is cached in chunks, cut at multiples of the chunk size, which attend in pieces, cut at multiples
    of `prompt_cut`, and a completion in the groups in which it was sampled: always in the same places, so
    that computing a sequence again, or going on from the rows of another, repeats the same arithmetic.
    """

    def __init__(
        self,
        request: GenerationRequest,
        tokenizer: TextTokenizer,
        eos_token_ids: Tokens[int],
        deadline: float = math.inf,
        prompt_cut: int = PROMPT_CUT,
    ) -> None:
        super().__init__(request, tokenizer, eos_token_ids)
        self.tenant = request.tenant
        self.repeatable = request.repeatable
        self.deadline = deadline
        self.cancelled = False
        self.extent: Extent | None = None
        self.cached = 0
        self.reused: int | None = None
        self.prompt_cut = prompt_cut
        self._probe: Probe | None = None

    @property
    def token_count(self) -> int:
        return len(self.tokens)

    @property
    def most_reused(self) -> int:
        return len(self.tokens) - 1

    @property
    def in_prompt(self) -> bool:
        return self.cached < self.prompt_length

    def next_work(self, chunk: int, limit: int) -> Work:
        if isinstance(self.block, TandemBlock):
            return Work(_tree_size(self.block.builder.frontier), self.cached)
        if self.in_prompt:
            cached = min(self.cached - self.cached % chunk + chunk, self.prompt_length)
        else:
            first, *others = self.group_ends[bisect_right(self.group_ends, self.cached) :]
            cached = max([first, *(end for end in others if end - self.cached <= limit)])
        return Work(1 if self._adopted() else cached - self.cached, cached)

    def pieces(self, cached: int) -> list[Append | Probe]:
        """What a pass computes of it, after which `cached` tokens are in the cache."""
        if self.extent is None:
            raise SequenceFailed("no cache rows")
        base = self.extent.start
        if isinstance(self.block, TandemBlock):
            self._probe = Probe(base, len(self.tokens), self.block.builder.frontier)
            return [self._probe]
        adopted = self._adopted()
        if adopted is not None:
            stop = len(self.tokens)
            return [Append(base, stop - 1, self.tokens[-1:], False, wants_logits=True, adopted=adopted)]
        if self.in_prompt:
            cut = self.prompt_cut
            ends = [*range(self.cached - self.cached % cut + cut, cached, cut), cached]
        else:
            first, last = (bisect_right(self.group_ends, place) for place in (self.cached, cached))
            ends = self.group_ends[first:last]
        return [
            Append(base, start, self.tokens[start:stop], self.in_prompt, stop == len(self.tokens))
            for start, stop in pairwise([self.cached, *ends])
        ]

    def forget_cache(self) -> None:
        self.extent = None
        self.cached = 0
        self._probe = None
        if isinstance(self.block, TandemBlock):
            self.block = None  # it is begun again to the same result

    def _adopted(self) -> tuple[Branches, Ints] | None:
        """The probed branch that the last block has chosen, if nothing else is to be cached."""
        if self._probe is None or self._probe.position != self.cached or self._probe.branches is None:
            return None
        branches, chosen = self._probe.branches, self.tokens[self.cached : -1]
        if len(chosen) != branches.paths.shape[1]:
            return None
        rows = branches.rows_of(chosen)
        return None if rows is None else (branches, rows)


def _tree_size(paths: Ints) -> int:
    """Rows that probes of different `paths` [branches, depth] need: the branches and their common starts."""
    starts = (np.unique(paths[:, :depth], axis=0) for depth in range(1, paths.shape[1]))
    return sum(map(len, starts)) + len(paths)


class TextReading(CachedSequence):
    """A sequence that is all prompt to the scheduler, and wants the logits of every row of the text."""

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
        """See `Schedulable`: the prompt but for its last token, whose logits say what comes first."""
        return max(0, self._before - 1)

    def next_work(self, chunk: int, limit: int) -> Work:
        """A chunk of the prompt, or up to `limit` rows once they have logits."""
        work = super().next_work(chunk, limit)
        return work if work.cached < self._before else super().next_work(min(chunk, limit), limit)

    def pieces(self, cached: int) -> list[Append | Probe]:
        return [
            replace(piece, wants_logits=True, every_row=True)
            if isinstance(piece, Append) and piece.position + len(piece.tokens) >= self._before
            else piece
            for piece in super().pieces(cached)
        ]

    def take(self, logits: torch.Tensor) -> Delta | None:
        """Reads the `logits` [rows, vocab] of the last tokens that were cached; an ending after the last.

        Raises:
            SequenceFailed: they are not finite.
        """
        # The row of a token says what comes after it.
        first = self.cached - len(logits) + 1 - self._before
        for start in range(max(0, -first), len(logits), ROWS):
            self.logprobs.take(first + start, logits[start : start + ROWS])
        return None if self.in_prompt else Delta(token_ids=(), text="", finish_reason="stop")
