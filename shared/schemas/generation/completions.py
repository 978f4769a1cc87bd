"""`POST /v1/completions`: OpenAI's text completion, with our extensions."""

from typing import Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from ttmark.shared.schemas.fields import (
    NonEmptyText,
    NoTruthValue,
    TokenIds,
    WholeNumber,
    left_out,
    not_supported,
    says,
)
from ttmark.shared.schemas.generation.sampling import ChoiceFields, Usage
from ttmark.shared.schemas.generation.watermark_block import WatermarkBlock

DEFAULT_MAX_TOKENS = 16
MAX_PROMPTS = 1024
MAX_COMPLETION_LOGPROBS = 20

FinishReason = Literal["stop", "length"]
Prompt = Annotated[
    NonEmptyText
    | Annotated[list[NonEmptyText], Field(min_length=1, max_length=MAX_PROMPTS, fail_fast=True)]
    | TokenIds
    | Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_PROMPTS, fail_fast=True)],
    says("must be a non-empty string, a list of them, a non-empty list of token ids, or a list of those"),
]


class CompletionRequest(ChoiceFields):
    """A prompt to continue."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"properties": {"logprobs": {"type": "null"}}},
                {"properties": {"echo": {"enum": [False, None]}}},
            ]
        }
    )

    prompt: Prompt = Field(description="One prompt or several, as text or as token ids.")
    max_tokens: Annotated[int, Field(ge=1), WholeNumber] | None = Field(
        default=None, description=f"Most tokens of a completion; {DEFAULT_MAX_TOKENS} by default."
    )
    echo: bool | None = Field(
        default=None, description="Puts the prompt in front of the completion; not with `logprobs`."
    )
    logprobs: Annotated[int, Field(ge=0, le=MAX_COMPLETION_LOGPROBS), WholeNumber] | None = Field(
        default=None, description="Log probabilities of each token and of so many alternatives."
    )
    best_of: Annotated[Literal[1] | None, NoTruthValue, not_supported("1")] = None
    suffix: Annotated[Literal[""] | None, not_supported()] = None

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts one by one, each as it was given."""
        is_one = isinstance(self.prompt, str) or isinstance(self.prompt[0], int)
        return cast(list[str | list[int]], [self.prompt] if is_one else self.prompt)


class CompletionLogprobs(BaseModel):
    """Parallel lists, one entry per token."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(BaseModel):
    """One completion, or in a stream a piece of it."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None = None
    finish_reason: FinishReason | None = None
    token_ids: list[int] | None = left_out()
    prompt_token_ids: list[int] | None = left_out()
    watermarked: bool | None = left_out("In a stream with `watermark.show_blocks`.")


class CompletionResponse(BaseModel):
    """The answer, and the chunk of a stream; in a stream `watermark` is in the last chunk only."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int = Field(description="Unix time in seconds.")
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None
    watermark: WatermarkBlock | None = left_out()
