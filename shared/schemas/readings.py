"""`POST /v1/readings`: how likely a model finds texts, and what it may be told of how they were made."""

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, JsonValue, model_validator

from ttmark.shared.schemas.chat import OF_THE_TEMPLATE, ChatMessage, TemplateVariables
from ttmark.shared.schemas.fields import AnswerModel, NonEmptyText, StrictModel, TokenIds, WholeNumber, says

TextOrIds = Annotated[NonEmptyText | TokenIds, says("must be a text or a list of token ids, not empty")]
PROMPT_OR_MESSAGES: list[JsonValue] = [
    {"properties": {name: {"type": "null"}}} for name in ("prompt", "messages")
]


class Origin(StrictModel):
    """What a text continues or answers, and the sampling at which it is supposed to have been made."""

    prompt: TextOrIds | None = Field(default=None, description="What the text continues, where it is known.")
    messages: Annotated[list[ChatMessage], Field(min_length=1, fail_fast=True)] | None = Field(
        default=None, description="The conversation that the text answers."
    )
    chat_template_kwargs: TemplateVariables | None = Field(default=None, description=OF_THE_TEMPLATE)
    temperature: float | None = Field(
        default=None,
        gt=0,
        le=2,
        description="Sampling of the text; wrong values cost power, not exactness. Where one of these fields "
        "or of those above is given, the others of the sampling are the model's own.",
    )
    top_p: float | None = Field(default=None, gt=0, le=1, description="1: off.")
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1), WholeNumber] | None = Field(
        default=None, description="0 and -1: off."
    )
    min_p: float | None = Field(default=None, ge=0, le=1, description="0: off.")
    repetition_penalty: float | None = Field(default=None, ge=1, le=2, description="1: off.")

    @model_validator(mode="after")
    def _prompt_or_messages(self) -> Self:
        if self.prompt is not None and self.messages is not None:
            raise ValueError("give `prompt` or `messages`, not both")
        return self

    @property
    def has_origin(self) -> bool:
        """Whether anything is said of how the text was made."""
        return any(getattr(self, name) is not None for name in Origin.model_fields)

    @property
    def origin(self) -> dict[str, Any]:
        """What is said of it, as JSON values."""
        return self.model_dump(mode="json", include=set(Origin.model_fields), exclude_none=True)


MOST_TEXTS = 64


class ReadingsRequest(Origin):
    """Texts to read, each for itself: after nothing, as the model says them; or each as of such an origin."""

    model_config = ConfigDict(json_schema_extra={"anyOf": PROMPT_OR_MESSAGES})

    model: str = Field(min_length=1, max_length=512, description="As GET /v1/models lists it.")
    texts: Annotated[list[TextOrIds], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)] = Field(
        description="Texts, or lists of token ids of at most the model's context."
    )


class Reading(AnswerModel):
    """One text: parts in order that are together its bytes, a part being a token in nearly all cases.

    The bytes are UTF-8; of token ids they are four for each, little-endian.
    """

    sha256: str = Field(description="SHA-256 (hex) of the text's bytes.")
    starts: list[int] = Field(description="First byte of each part.")
    ends: list[int] = Field(description="The byte after each part.")
    logprobs: list[float | None] = Field(
        description="Natural logarithm of each part's probability, at the sampling that was named, else at "
        "temperature 1 without filters; -9999: none is left, or less; null: unknown, of the first."
    )


class ReadingsResponse(AnswerModel):
    """Readings in the order of the texts."""

    model: str
    readings: list[Reading]
    tokens: int = Field(description="Tokens that were read: of each text, and of what stands before it.")
    request_id: str
