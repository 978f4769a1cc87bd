"""What a caller hands to the engine and what it gets back."""

import math
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import torch

from ttmark.gen_service.decoding.filtered_tokens import FilterParams
from ttmark.shared.schemas.generation.tools import CallDelta
from ttmark.shared.vault.confidential import Confidential
from ttmark.shared.watermark.schemes.watermark import Watermark

FinishReason = Literal["stop", "length", "tool_calls"]
"""Why a completion ended; an engine says one of the first two."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Decoding parameters of one request, with the meaning that transformers' processors give them.

    Order: logit_bias, penalties (`LogitAdjustments`), bans (`Bans`) and grammar, temperature, top-k, top-p,
    min-p; the watermark comes last.

    Attributes:
        top_k: 0 keeps every token.
        min_tokens: tokens before the text may end, by an end of text, `stop_token_ids` or `stop`.
        stop_token_ids: further tokens that end the text, also with `ignore_eos`.
        bad_words: token sequences that the completion may not have.
        seed: the same seed gives the same completion; None draws one.
        logprobs: how many alternatives to report beside each token; None reports nothing.
        max_branches: lowers the engine's branch budget for this request.

    Raises:
        ValueError: a value is out of range; the text begins with the field's name.
    """

    max_tokens: int
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    stop: tuple[str, ...] = ()
    min_tokens: int = 0
    stop_token_ids: tuple[int, ...] = ()
    bad_words: tuple[tuple[int, ...], ...] = ()
    seed: int | None = None
    ignore_eos: bool = False
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    logprobs: int | None = None
    max_branches: int | None = None

    def __post_init__(self) -> None:
        _require(self.max_tokens >= 1, "max_tokens must be at least 1")
        _require(0.0 <= self.temperature <= 100.0, "temperature must be between 0 and 100")
        _require(self.top_k >= 0, "top_k must be at least 0 (0 turns it off)")
        _require(0.0 < self.top_p <= 1.0, "top_p must be above 0 and at most 1")
        _require(0.0 <= self.min_p <= 1.0, "min_p must be between 0 and 1")
        _require(all(self.stop), "stop must not hold an empty string")
        _require(0 <= self.min_tokens <= self.max_tokens, "min_tokens must be between 0 and the most tokens")
        _require(all(self.bad_words), "bad_words must not hold a word without tokens")
        _require(abs(self.presence_penalty) <= 2.0, "presence_penalty must be between -2 and 2")
        _require(abs(self.frequency_penalty) <= 2.0, "frequency_penalty must be between -2 and 2")
        _require(1.0 <= self.repetition_penalty <= 2.0, "repetition_penalty must be between 1 and 2")
        _require(all(math.isfinite(bias) for bias in self.logit_bias.values()), "logit_bias must be finite")
        _require(self.logprobs is None or 0 <= self.logprobs <= 100, "logprobs must be between 0 and 100")
        _require(self.max_branches is None or self.max_branches >= 1, "max_branches must be at least 1")

    @property
    def filters(self) -> FilterParams:
        return FilterParams(**{each.name: getattr(self, each.name) for each in fields(FilterParams)})


@dataclass(frozen=True, slots=True)
class Marking(Confidential):
    """The watermark of one request and the key that it is made with.

    Attributes:
        opening_bits: the surprise of the tokens before the first mark, at most; detectors need not know it.
    """

    key_id: str
    key_version: int
    profile_id: str
    watermark: Watermark
    prf_key: bytes = field(repr=False)
    opening_bits: float = 0.0


class ConstraintState(Protocol):
    """How far one completion has come under its constraint."""

    def advance(self, tokens: Sequence[int]) -> None:
        """Takes note of tokens that were appended; none of them ends the text."""

    def mask(
        self, logits: torch.Tensor, paths: Sequence[Sequence[int]], own: torch.Tensor | None = None
    ) -> None:
        """Sets `logits` [branches, vocab] to -inf in place where the completion may not go on so.

        Args:
            paths: branch i comes after the completion and `paths[i]`, which holds no end of text.
            own: [branches, vocab] the model's own logits, of which the constraint may change the spelling.
        """


class Constraint(Protocol):
    """What a completion may be: one more filter of its tokens.

    Attributes:
        free: whether a text may be free until it begins something that the constraint knows.
    """

    @property
    def free(self) -> bool: ...

    def begin(self) -> ConstraintState: ...


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One completion to generate.

    Attributes:
        prompt_ids: tokens of the prompt, at least one.
        marking: None generates without a watermark, for `unmarked_reason`.
        unmarked_block_size: tokens that count as one block where there is no marking.
        grammar: what the completion may be, an end of text included; None is anything.
        tenant: whose it is; the engine's work is shared between tenants.
        marks: special tokens that show in the text, and the character that stands for each.
        repeatable: the same request gets the same text again while nothing else runs. An engine whose bits
            depend on how a prompt was computed then computes the whole prompt.

    Raises:
        ValueError: the prompt is empty, or a grammar stands together with `ignore_eos`, `min_tokens` or
            `bad_words`, beside which it could leave nothing to go on with.
    """

    request_id: str
    prompt_ids: tuple[int, ...]
    sampling: SamplingParams
    marking: Marking | None
    unmarked_reason: str | None = None
    unmarked_block_size: int = 1
    grammar: Constraint | None = None
    tenant: str = ""
    repeatable: bool = False
    marks: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(len(self.prompt_ids) >= 1, "prompt_ids must hold at least one token")
        _require(self.unmarked_block_size >= 1, "unmarked_block_size must be at least 1")
        _require(
            self.grammar is None or not self.sampling.ignore_eos,
            "ignore_eos cannot go past the end of a grammar",
        )
        for name in ("min_tokens", "bad_words"):
            _require(
                self.grammar is None or not getattr(self.sampling, name),
                f"{name} could forbid all that a grammar allows",
            )


@dataclass(frozen=True, slots=True)
class ReadingRequest:
    """A text whose tokens' probabilities are asked for.

    Attributes:
        prompt_ids: what the text continues; may be empty.
        filters: the sampling at which the text is supposed to have been made.
        repetition_penalty: part of that sampling; no other penalty or bias is supposed.

    Raises:
        ValueError: prompt and text have fewer than two tokens, so that the model says nothing of any.
    """

    request_id: str
    prompt_ids: tuple[int, ...]
    text_ids: tuple[int, ...]
    filters: FilterParams
    tenant: str = ""
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        enough = len(self.text_ids) >= 1 and len(self.prompt_ids) + len(self.text_ids) >= 2
        _require(enough, "prompt and text must hold at least two tokens, the text one of them")


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """Log probability of an emitted token under the model's own distribution (no filter, temperature 1).

    Attributes:
        top: the likeliest alternatives, likeliest first, as (token id, log probability).
    """

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True)
class MarkReport:
    """How much of a completion carries the watermark.

    Attributes:
        blocks: blocks of the completion, a short last one included; without a marking of
            `unmarked_block_size` tokens.
        reasons: blocks without watermark by reason: opening, warm_up, repeated_context, greedy, odd_end,
            confined, or the request's `unmarked_reason`.
    """

    blocks: int
    watermarked_blocks: int
    reasons: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of a completion.

    Attributes:
        token_ids: new tokens; an end-of-text token is included.
        text: new text; may lag behind the tokens inside a multi-byte character or a possible stop string.
        watermarked: whether `token_ids` are a block that carries the watermark.
        finish_reason: set in the last piece only, as `report` is.
        reused_tokens: prompt tokens that an engine found in its cache; in the last piece. It tells of what
            was asked before, not of the completion, so equal completions may differ in it.
        index: the number of the completion in its answer; an engine leaves it at 0.
        reasoning, calls: what the `text` of an answer leaves out; an engine tells neither from text.
    """

    token_ids: tuple[int, ...]
    text: str
    finish_reason: FinishReason | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    report: MarkReport | None = None
    watermarked: bool = False
    reused_tokens: int = field(default=0, compare=False)
    index: int = 0
    reasoning: str = ""
    calls: tuple[CallDelta, ...] = ()


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(message)


A = TypeVar("A")
R = TypeVar("R")


class SequenceFailed(Exception):
    """One request failed while it was being generated; its neighbours are not affected."""

    @classmethod
    def because(cls, error: Exception) -> "SequenceFailed":
        """The failure that an unexpected error makes; one of its own stays as it is."""
        if isinstance(error, cls):
            return error
        failure = cls(f"{type(error).__name__}: {error}")
        failure.__cause__ = error
        return failure

    @property
    def origin(self) -> str:
        """Type and place of the error behind it, for logs: messages may hold what must not be logged."""
        error: BaseException = self.__cause__ or self
        frames = traceback.extract_tb(error.__traceback__)
        where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
        return f"{type(error).__name__}{where}"


def each_or_failed(compute: Callable[[Sequence[A]], list[R]], items: Sequence[A]) -> list[R | SequenceFailed]:
    """What `compute` makes of all items at once; if that fails, of each alone: its result or its failure."""
    try:
        return [*compute(items)]
    except Exception as error:
        if len(items) == 1:
            return [SequenceFailed.because(error)]
        return [result for item in items for result in each_or_failed(compute, [item])]
