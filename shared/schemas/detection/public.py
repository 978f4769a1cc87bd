"""`POST /v1/detect/public`, and the document that says how to ask it."""

from typing import Literal

from pydantic import Field

from ttmark.shared.schemas.detection.detect import Message
from ttmark.shared.schemas.fields import AnswerModel, StrictModel, left_out

PublicVerdict = Literal["found", "not_found", "too_short", "not_examined"]


class PublicQuestion(StrictModel):
    """One text. The rate and everything else are the deployment's."""

    text: str = Field(
        description="The longer, the surer the answer. /.well-known/text-provenance.json says the most."
    )


class PublicAnswer(AnswerModel):
    """One decision at one rate, and no more than that."""

    verdict: PublicVerdict = Field(
        description="`not_examined` says nothing about the text: an error on our side ended its examination."
    )
    basis: str | None = left_out(
        "What the answer rests on, where that is not a watermark of this deployment: "
        "`foreign_watermark`, that of another system, or `metadata`, a signed manifest in a text in which no "
        "watermark was found. Later services may know others."
    )
    message: Message


class PublicLimits(AnswerModel):
    """What may be asked. A word is six characters; null: any number."""

    characters: int = Field(description="Of one text.")
    words_per_day: int | None = Field(description="Of an access token.")
    words_per_day_without_token: int | None = Field(
        description="Of a network address; null, too, where a token is needed."
    )
    questions_per_passage: int = Field(
        description="Of one asker, about texts that share a passage; the same text again is free."
    )


class PublicPromises(AnswerModel):
    """What each answer says and does not say, in words."""

    found: str
    not_found: str
    too_short: str


class TextProvenance(AnswerModel):
    """How to ask this deployment whether a text is its own. Addresses are relative to this document's."""

    version: Literal[1] = 1
    operator: str | None = Field(description="Address of the page or mailbox of who gives out access tokens.")
    endpoint: str = Field(description='Address to POST `{"text": "..."}` to.')
    page: str = Field(description="Address of the page for people.")
    scope: str = Field(description="What an access token has to allow.")
    token_required: bool = Field(description="Whether a request without an access token is refused.")
    false_alarm_rate: float = Field(
        gt=0, le=1, description="Of texts that carry none of the marks, at most this share is `found`."
    )
    bases: list[str] = Field(description="What is looked for, as `basis` names it.")
    languages: list[str] = Field(
        description="Of the words in answers (BCP 47). Texts may be in any language."
    )
    limits: PublicLimits
    promises: PublicPromises
    case_key: str | None = Field(
        description="Address of the public key that this deployment's signed cases are verified with."
    )
    description: str = Field(description="Address of the OpenAPI description.")
