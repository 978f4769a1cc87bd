"""One completion on its way from logits to tokens and text, with the block in the making."""

import math
import secrets
from collections import Counter
from collections.abc import Sequence as Tokens

import torch

from ttmark.gen_service.decoding.logit_processors import Bans, LogitAdjustments, TokenCounts
from ttmark.gen_service.decoding.logprobs import block_logprobs
from ttmark.gen_service.decoding.randomness import Draw, Draws
from ttmark.gen_service.decoding.request import Delta, FinishReason, GenerationRequest, MarkReport
from ttmark.gen_service.decoding.tandem_block import Block, BlockBuilder, PlainBlock, TandemBlock
from ttmark.gen_service.decoding.text_stream import TextStream
from ttmark.shared.tokenization import TextTokenizer

OPENING = "opening"
"""Why a block is unmarked that comes before the completion has gone a way of its own."""
TOKENS_PER_BIT = 4
"""Tokens that a completion may have for each bit of its opening: docs/adr/0099."""


def opening_bits(request: GenerationRequest) -> float:
    """Surprise, in bits, that a completion spends before its first mark.

    The surprise of a token is -log2 of the probability that it was drawn with. Less where the completion may
    have few tokens, and none under a grammar, where a whole text may hold no more, unless
    it may be free.
    """
    held = request.grammar is not None and not request.grammar.free
    if request.marking is None or held:
        return 0.0
    return min(request.marking.opening_bits, request.sampling.max_tokens / TOKENS_PER_BIT)


CONFINED = "confined"
"""Why a block is unmarked of which the caller chose too much."""
_DEFAULT_UNMARKED_REASON = "disabled"


class Sequence:
    """State of one completion.

    Attributes:
        tokens: prompt and completion.
        token_limit: tokens that there will be at most.
        ends: tokens that end the text.
        block: the block in the making, if one was begun.
        group_ends: numbers of tokens after each group that was sampled together.
    """

    def __init__(
        self, request: GenerationRequest, tokenizer: TextTokenizer, eos_token_ids: Tokens[int]
    ) -> None:
        params, marking = request.sampling, request.marking
        self.request = request
        self.params = params
        self.tokens = list(request.prompt_ids)
        self.prompt_length = len(request.prompt_ids)
        self.token_limit = self.prompt_length + params.max_tokens
        self.ends = frozenset(() if params.ignore_eos else eos_token_ids) | set(params.stop_token_ids)
        self.filters = params.filters
        self.block: Block | None = None
        self.group_ends: list[int] = []
        self.finish_reason: FinishReason | None = None
        self._block_size = marking.watermark.block_size if marking else request.unmarked_block_size
        self._marked = (marking, marking.watermark.tracker()) if marking else None
        self._opening_bits = opening_bits(request)
        self._draws = Draws(secrets.randbits(64) if params.seed is None else params.seed)
        self._adjustments = LogitAdjustments(
            params.presence_penalty, params.frequency_penalty, params.logit_bias, params.repetition_penalty
        )
        self._counts = TokenCounts(request.prompt_ids if self._adjustments.repetition != 1.0 else ())
        self._bans = Bans(params.min_tokens, self.ends, params.bad_words)
        self._grammar = request.grammar.begin() if request.grammar else None
        self._text = TextStream(tokenizer, params.stop, request.marks)
        self._blocks = 0
        self._watermarked = 0
        self._reasons: Counter[str] = Counter()

    @property
    def completion(self) -> list[int]:
        return self.tokens[self.prompt_length :]

    @property
    def completion_length(self) -> int:
        return len(self.tokens) - self.prompt_length

    @property
    def left(self) -> int:
        return self.token_limit - len(self.tokens)

    @property
    def _may_stop(self) -> bool:
        """Whether a stop string that the last token completes ends the text."""
        return self.completion_length > self.params.min_tokens

    def open_block(self, max_branches: int) -> Block:
        """The block in the making, or a new one: watermarked, or plain for a reason that is counted."""
        if self.block is None:
            self.block = self._new_block(min(max_branches, self.params.max_branches or max_branches))
        return self.block

    def adjust(self, block: Block, logits: torch.Tensor) -> torch.Tensor | None:
        """Applies bias, penalties, bans and grammar to the block's `logits` [paths, vocab], in place.

        Returns:
            The model's own logits, if the block is to be watermarked and they were changed.
        """
        paths = block.paths
        bans = self._bans.active(self.completion_length)
        changes = self._adjustments.active or bans or self._grammar is not None
        own = logits.clone() if changes and isinstance(block, TandemBlock) else None
        if self.params.logprobs is not None:
            block.model_logits.update(zip(paths, logits.clone(), strict=True))
        if self._adjustments.active:
            self._adjustments.apply(logits, self._counts, paths)
        if bans:
            self._bans.apply(logits, self.completion, paths)
        if self._grammar is not None:
            self._grammar.mask(logits, paths, own)
        return own

    def token_uniform(self) -> float:
        """The random number that draws the next token of a plain block."""
        return self._draws.uniform(self.completion_length, Draw.TOKEN)

    def append(self, block: Block, new: tuple[int, ...], probability: float = 1.0) -> Delta:
        """Appends a token of a plain block, or a watermarked block.

        A block that an end of text or a stop string cuts short, or of which the caller chose too much, does
        not count as a watermarked one.

        Args:
            probability: with which a token of the opening was drawn.
        """
        top = self.params.logprobs
        logprobs = None if top is None else block_logprobs(block.model_logits, new, top)
        taken, text = self._take(new)
        whole = isinstance(block, TandemBlock) and block.marked and taken == self._block_size
        if isinstance(block, PlainBlock):
            self._opening_bits += math.log2(probability)
            block.left -= 1
            if not block.left:
                self.block = None
        else:
            self.block = None
            self._blocks += 1
            self._watermarked += whole
            if not whole:
                self._reasons["odd_end" if block.marked else CONFINED] += 1
        return Delta(
            token_ids=new[:taken],
            text=text,
            finish_reason=self.finish_reason,
            logprobs=None if logprobs is None else logprobs[:taken],
            report=self.report() if self.finish_reason else None,
            watermarked=whole,
        )

    def report(self) -> MarkReport:
        return MarkReport(self._blocks, self._watermarked, dict(self._reasons))

    def _new_block(self, max_branches: int) -> Block:
        size = self._block_size
        if self._marked is None:
            return self._plain_block(self.request.unmarked_reason or _DEFAULT_UNMARKED_REASON)
        if self.filters.greedy:
            return self._plain_block("greedy")
        if self.left < size:
            return self._plain_block("odd_end")
        if self._opening_bits > 0:
            return self._plain_block(OPENING)
        marking, tracker = self._marked
        context = tracker.next_context(self.completion)
        if context is None:
            return self._plain_block(tracker.reason or "no_context")
        position = self.completion_length
        builder = BlockBuilder(size, self.ends, self._draws, position, max_branches)
        return TandemBlock(marking, context, builder, self._draws.uniform(position, Draw.BLOCK))

    def _plain_block(self, reason: str) -> PlainBlock:
        self._blocks += 1
        self._reasons[reason] += 1
        return PlainBlock(self._block_size, opening=reason == OPENING)

    def _take(self, new: tuple[int, ...]) -> tuple[int, str]:
        """Appends tokens up to the end of the completion; how many of them, and their text."""
        text, taken = "", 0
        for token in new:
            self.tokens.append(token)
            self._counts.add(token)
            taken += 1
            if token in self.ends:
                self.finish_reason = "stop"
            else:
                text += self._text.push(token, stops=self._may_stop)
            if self._text.stopped:
                self.finish_reason = "stop"
            if self.finish_reason is None and self.left == 0:
                self.finish_reason = "length"
            if self.finish_reason:
                break
        self.group_ends.append(len(self.tokens))
        if self._grammar is not None and self.finish_reason is None:
            self._grammar.advance(new)
        if self.finish_reason:
            text += self._text.finish(stops=self._may_stop)
            if self._text.stopped:
                self.finish_reason = "stop"
        return taken, text
