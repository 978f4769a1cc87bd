"""`POST /v1/readings`: how likely the model finds each part of a text."""

from typing import Annotated

from pydantic import Field

from ttmark.shared.schemas.bodies import AnswerModel, StrictModel
from ttmark.shared.schemas.fields import NonEmptyText

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
