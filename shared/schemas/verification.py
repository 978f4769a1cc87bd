"""What a model says of a text: `POST /v1/watermark/verify` with its verdict, `POST /v1/readings` without."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from ttmark.shared.schemas.chat import OF_THE_TEMPLATE, ChatMessage, TemplateVariables
from ttmark.shared.schemas.detection import DEFAULT_FPR, EXACTLY_ONE_CONTENT, DetectedKey, KeyId
from ttmark.shared.schemas.fields import AnswerModel, NonEmptyText, StrictModel, TokenIds, WholeNumber


class VerificationRequest(StrictModel):
    """A text, what it answers, and the sampling at which it is supposed to have been made."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": EXACTLY_ONE_CONTENT,
            "anyOf": [{"properties": {name: {"type": "null"}}} for name in ("prompt", "messages")],
        }
    )

    model: str = Field(min_length=1, max_length=512, description="As GET /v1/models lists it.")
    text: NonEmptyText | None = None
    token_ids: TokenIds | None = None
    prompt: NonEmptyText | TokenIds | None = Field(
        default=None, description="What the text continues, where it is known."
    )
    messages: Annotated[list[ChatMessage], Field(min_length=1, fail_fast=True)] | None = Field(
        default=None, description="The conversation that the text answers."
    )
    chat_template_kwargs: TemplateVariables | None = Field(default=None, description=OF_THE_TEMPLATE)
    temperature: float | None = Field(
        default=None,
        gt=0,
        le=2,
        description="Sampling of the text; wrong values cost power, not exactness. By default this "
        "and the next four are the model's own.",
    )
    top_p: float | None = Field(default=None, gt=0, le=1, description="1: off.")
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1), WholeNumber] | None = Field(
        default=None, description="0 and -1: off."
    )
    min_p: float | None = Field(default=None, ge=0, le=1, description="0: off.")
    repetition_penalty: float | None = Field(default=None, ge=1, le=2, description="1: off.")
    keys: Annotated[list[KeyId], Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="Key ids to try; left out: all for this model's tokenizer."
    )
    fpr: Annotated[float, Field(ge=1e-100, le=0.1)] = Field(
        default=DEFAULT_FPR, description="False positive rate, all hypotheses counted."
    )

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.text is None) == (self.token_ids is None):
            raise ValueError("give exactly one of `text` and `token_ids`")
        if self.prompt is not None and self.messages is not None:
            raise ValueError("give `prompt` or `messages`, not both")
        return self


class VerificationResponse(AnswerModel):
    """The key that explains the text best, by the likelihood ratio that the model reads along for."""

    verdict: Literal["watermarked", "not_detected"]
    tokens: int
    prompt_tokens: int
    hypotheses: int = Field(description="Keys that were tried; the p-value is corrected for them.")
    p_value: float
    log10_p: float
    log10_e: float = Field(description="log10 of the mean E-value of all keys; 1 / E is a p-value.")
    scored_blocks: int = Field(description="Positions with a block and context of their own.")
    key: DetectedKey | None = Field(default=None, description="Set when the verdict is `watermarked`.")
    request_id: str


MOST_TEXTS = 64


class ReadingsRequest(StrictModel):
    """Texts to read, each for itself and without anything before it."""

    model: str = Field(min_length=1, max_length=512, description="As GET /v1/models lists it.")
    texts: Annotated[list[NonEmptyText], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)]


class Reading(AnswerModel):
    """One text: parts in order that are together its UTF-8, a part being a token in nearly all cases."""

    sha256: str = Field(description="SHA-256 (hex) of the text's UTF-8.")
    starts: list[int] = Field(description="First byte of each part.")
    ends: list[int] = Field(description="The byte after each part.")
    logprobs: list[float | None] = Field(
        description="Natural logarithm of each part's probability, at temperature 1 without filters; "
        "null: unknown, of the first."
    )


class ReadingsResponse(AnswerModel):
    """Readings in the order of the texts."""

    model: str
    readings: list[Reading]
    tokens: int = Field(description="Tokens of all texts.")
    request_id: str
