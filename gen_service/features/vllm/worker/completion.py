"""A completion in the worker: our sequence, and how far vLLM's own list of its tokens has come."""

from collections.abc import Sequence as Tokens

import torch

from ttmark.gen_service.decoding.logprobs import TextLogprobs
from ttmark.gen_service.decoding.request import GenerationRequest, ReadingRequest, SequenceFailed
from ttmark.gen_service.decoding.sequence import Sequence
from ttmark.shared.tokenization import TextTokenizer

FILLER = 0
"""What vLLM is told of a completion that is over, until the request is aborted; nobody sees it."""


class Completion(Sequence):
    """A sequence that is decided a block at a time, and told to vLLM a token and its drafts at a time.

    Attributes:
        ticket: its name.
        pending: tokens that are decided, and that vLLM does not have in its list yet.
        failed: whether it ended without a last piece.
        reused: prompt tokens that vLLM found in its cache.
    """

    def __init__(
        self, ticket: str, request: GenerationRequest, tokenizer: TextTokenizer, eos_token_ids: Tokens[int]
    ) -> None:
        super().__init__(request, tokenizer, eos_token_ids)
        self.ticket = ticket
        self.pending: list[int] = []
        self.failed = False
        self.reused = 0

    @property
    def over(self) -> bool:
        return self.failed or self.finish_reason is not None

    @property
    def drafts(self) -> list[int]:
        """Tokens that vLLM is to compute, without asking, after the one it was given last."""
        return [] if self.over else list(self.pending)

    def accept(self, drafted: Tokens[int]) -> list[int]:
        """Tokens that are in vLLM's list after a step that computed the `drafted` ones, as far as decided.

        If none is pending afterwards, the step's last row says what comes next. Otherwise (vLLM dropped
        drafts, as after a preemption) the first that was not computed is given as if sampled now.

        Raises:
            SequenceFailed: vLLM computed other tokens than those that were decided.
        """
        if list(drafted) != self.pending[: len(drafted)]:
            raise SequenceFailed("the step computed tokens that were not decided")
        count = len(drafted) + 1
        accepted, self.pending = self.pending[:count], self.pending[count:]
        return accepted


class ReadingUnderWay:
    """A text that is read: how likely the model finds each of its tokens."""

    def __init__(self, ticket: str, request: ReadingRequest) -> None:
        self.ticket = ticket
        self.failed = False
        self.logprobs = TextLogprobs(request)
        self._before = len(request.prompt_ids)

    def wanted(self, start: int, count: int) -> range:
        """Of the rows at positions `start` to `start + count`, those that speak of the text's tokens."""
        end = self._before + len(self.logprobs.values) - 1
        return range(max(0, self._before - 1 - start), min(count, end - start))

    def take(self, position: int, logits: torch.Tensor) -> None:
        """Reads `logits` [rows, vocab] of rows from `position` on.

        Raises:
            SequenceFailed: they are not finite.
        """
        self.logprobs.take(position + 1 - self._before, logits)

    def ends_at(self, position: int) -> bool:
        """Whether nothing is left after the row at `position`."""
        return position + 2 >= self._before + len(self.logprobs.values)
