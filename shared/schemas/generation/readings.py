"""`POST /v1/readings`: how likely a model finds texts."""

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator

from ttmark.shared.schemas.fields import AnswerModel
from ttmark.shared.schemas.generation.origin import NOT_BOTH, PROMPT_OR_MESSAGES, Origin, TextOrIds

MOST_TEXTS = 64


class ReadingsRequest(Origin):
    """Texts to read, each for itself: after nothing, as the model says them; or each as of such an origin."""

    model_config = ConfigDict(json_schema_extra={"anyOf": PROMPT_OR_MESSAGES})

    model: str = Field(min_length=1, max_length=512, description="As GET /v1/models lists it.")
    texts: Annotated[list[TextOrIds], Field(min_length=1, max_length=MOST_TEXTS, fail_fast=True)] = Field(
        description="Texts, or lists of token ids of at most the model's context."
    )

    @model_validator(mode="after")
    def _prompt_or_messages(self) -> Self:
        if self.prompt is not None and self.messages is not None:
            raise ValueError(NOT_BOTH)
        return self


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
