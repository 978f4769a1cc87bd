"""What `POST /v1/detect` answers beyond the other modes."""

from typing import Literal

from pydantic import Field

from ttmark.shared.schemas.detection import DetectedKey, DetectionResponse, DetectionResult, DocumentError
from ttmark.shared.schemas.fields import AnswerModel, is_none


class MarkedShare(AnswerModel):
    """How much of a text stands in passages that carry the mark, words edited inside of them included."""

    estimate: float = Field(ge=0, le=1)
    low: float = Field(ge=0, le=1, description="Lower end of a 95 % interval.")
    high: float = Field(ge=0, le=1)


ReaderState = Literal["none", "down", "not_needed", "read"]


class ConversationMessage(AnswerModel):
    """A message of a conversation, and what all up to it say together."""

    id: str
    tokens: int
    error: DocumentError | None = Field(
        default=None, exclude_if=is_none, description="Why the message was left out, if it was."
    )
    log10_e: float | None = Field(
        default=None,
        description="Of the messages up to this one; 1 / E is a p-value wherever one stops.",
    )
    key: DetectedKey | None = Field(
        default=None,
        description="The key that the message speaks for; by itself it may prove little.",
    )


class CombinedResult(DetectionResult):
    """Outcome for one document, by the likelihood ratio."""

    log10_e: float | None = Field(
        default=None,
        description="log10 of the mean E-value; 1 / E is a p-value.",
    )
    reader: ReaderState | None = Field(
        default=None,
        description="Whether a language model read along; `not_needed`: the answer stood without; "
        "`down`: it does not answer.",
    )
    scope: Literal["whole", "passages"] | None = Field(
        default=None,
        description="With `watermarked`: whether `segments` stand out, or the evidence is of the "
        "whole text. Neither says that all words are the model's.",
    )
    marked_share: MarkedShare | None = Field(default=None, description="With `watermarked`.")
    weak: bool | None = Field(
        default=None,
        description="Not found, but with a p-value of at most 100 times `fpr`, and 0.01.",
    )
    messages: list[ConversationMessage] | None = Field(
        default=None,
        exclude_if=is_none,
        description="Of a conversation: its messages in order.",
    )


class CombinedResponse(DetectionResponse):
    """Results in the order of the inputs; of a conversation one."""

    results: list[CombinedResult]  # type: ignore[assignment]
