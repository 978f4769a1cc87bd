"""One request on its way through the engine: its tokens, what is cached, and the block in the making."""

import math
import secrets
from collections import Counter
from collections.abc import Sequence as Tokens

import numpy as np
import torch

from gen_service.decoding.filters import FilterParams
from gen_service.decoding.penalties import LogitAdjustments
from gen_service.decoding.randomness import Draws
from gen_service.decoding.tandem import BlockBuilder
from gen_service.engine.extents import Extent
from gen_service.engine.piece import Piece
from gen_service.engine.request import Delta, FinishReason, GenerationRequest, MarkReport, TokenLogprob
from gen_service.engine.text_stream import TextStream
from shared.tokenization import TextTokenizer
from shared.watermark import ContextTracker

DEFAULT_UNMARKED_REASON = "disabled"


class Sequence:
    """State of one completion; the engine's thread alone touches it, but for `cancelled`."""

    def __init__(
        self,
        request: GenerationRequest,
        tokenizer: TextTokenizer,
        eos_token_ids: Tokens[int],
        deadline: float = math.inf,
    ) -> None:
        params, marking = request.sampling, request.marking
        self.request = request
        self.params = params
        self.marking = marking
        self.deadline = deadline
        self.cancelled = False
        self.tokens = list(request.prompt_ids)
        self.prompt_length = len(request.prompt_ids)
        self.token_limit = self.prompt_length + params.max_tokens
        self.ends = frozenset() if params.ignore_eos else frozenset(eos_token_ids)
        self.block_size = marking.watermark.block_size if marking else 1
        self.tracker = (
            ContextTracker(marking.watermark.block_size, marking.watermark.context_width) if marking else None
        )
        self.draws = Draws(secrets.randbits(64) if params.seed is None else params.seed)
        self.filters = FilterParams(params.temperature, params.top_k, params.top_p, params.min_p)
        self.adjustments = LogitAdjustments(
            params.presence_penalty, params.frequency_penalty, params.logit_bias
        )
        self.kept_logits: dict[tuple[int, ...], torch.Tensor] = {}  # model's logits by path, for logprobs
        self.extent: Extent | None = None
        self.cached = 0
        self.builder: BlockBuilder | None = None
        self.context: tuple[int, ...] | None = None
        self.plain_left = 0
        self.finish_reason: FinishReason | None = None
        self._pieces: list[int] = []  # lengths of the groups in which the completion was sampled
        self._text = TextStream(tokenizer, params.stop)
        self._blocks = 0
        self._watermarked = 0
        self._reasons: Counter[str] = Counter()

    @property
    def token_count(self) -> int:
        return len(self.tokens)

    @property
    def probe_rows(self) -> int:
        """Rows that the probes of the block need: its branches and their common starts."""
        if self.builder is None:
            return 0
        paths = self.builder.frontier  # all different
        starts = (np.unique(paths[:, :depth], axis=0) for depth in range(1, paths.shape[1]))
        return sum(map(len, starts)) + len(paths)

    @property
    def completion(self) -> list[int]:
        return self.tokens[self.prompt_length :]

    @property
    def completion_length(self) -> int:
        return len(self.tokens) - self.prompt_length

    @property
    def left(self) -> int:
        """Tokens that may still be sampled."""
        return self.token_limit - len(self.tokens)

    def pending_pieces(self, chunk: int, limit: int) -> list[Piece]:
        """The next tokens to cache: at least one piece, up to about `limit` tokens."""
        if self.cached < self.prompt_length:
            stop = min(self.cached + chunk, self.prompt_length)
            return [Piece(self.cached, stop, is_chunk=True)]
        pieces: list[Piece] = []
        start = self.prompt_length
        for length in self._pieces:
            stop = start + length
            if stop > self.cached:
                if pieces and stop - pieces[0].start > limit:
                    break
                pieces.append(Piece(start, stop, is_chunk=False))
            start = stop
        return pieces

    def forget_cache(self) -> None:
        """Gives up everything that is computed again from the tokens."""
        self.extent = None
        self.cached = 0
        self.builder = None
        self.context = None

    def begin_plain_block(self, size: int, reason: str) -> None:
        """The next `size` tokens are sampled one by one without a watermark, for `reason`."""
        self.plain_left = size
        self._blocks += 1
        self._reasons[reason] += 1

    def append_plain(self, token: int, logprobs: tuple[TokenLogprob, ...] | None = None) -> Delta:
        """Appends one token of a plain block."""
        self.plain_left -= 1
        return self._append((token,), logprobs)

    def append_block(self, block: tuple[int, ...], logprobs: tuple[TokenLogprob, ...] | None = None) -> Delta:
        """Appends a watermarked block; one that an end of text or a stop string cuts short does not count."""
        before = len(self.tokens)
        delta = self._append(block, logprobs)
        whole = len(self.tokens) - before == self.block_size
        self._blocks += 1
        self._watermarked += whole
        if not whole:
            self._reasons["odd_end"] += 1
        return delta if delta.report is None else _with_report(delta, self.report())

    def report(self) -> MarkReport:
        return MarkReport(self._blocks, self._watermarked, dict(self._reasons))

    def _append(self, new: tuple[int, ...], logprobs: tuple[TokenLogprob, ...] | None) -> Delta:
        text, taken = "", 0
        for token in new:
            self.tokens.append(token)
            taken += 1
            if token in self.ends:
                self.finish_reason = "stop"
            else:
                text += self._text.push(token)
            if self._text.stopped:
                self.finish_reason = "stop"
            if self.finish_reason is None and self.left == 0:
                self.finish_reason = "length"
            if self.finish_reason:
                break
        self._pieces.append(taken)
        if self.finish_reason:
            text += self._text.finish()
            if self._text.stopped:
                self.finish_reason = "stop"
        return Delta(
            token_ids=new[:taken],
            text=text,
            finish_reason=self.finish_reason,
            logprobs=None if logprobs is None else logprobs[:taken],
            report=self.report() if self.finish_reason else None,
        )


def _with_report(delta: Delta, report: MarkReport) -> Delta:
    return Delta(delta.token_ids, delta.text, delta.finish_reason, delta.logprobs, report)
