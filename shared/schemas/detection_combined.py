"""What `POST /v1/detect` answers beyond the other modes."""

from typing import Literal

from pydantic import Field

from ttmark.shared.schemas.detection import DetectedKey, DetectionResponse, DetectionResult, DocumentError
from ttmark.shared.schemas.fields import AnswerModel, is_none


class MarkedShare(AnswerModel):
    """How much of a text stands in passages that carry the mark, words edited inside of them included."""

    estimate: float = Field(ge=0, le=1)
    low: float = Field(ge=0, le=1, description="Lower end of an interval that holds 95 % of true shares.")
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
        description="log10 of the E-value of the messages up to this one. Whoever stops at any of them may "
        "take 1 / E as a p-value.",
    )
    key: DetectedKey | None = Field(
        default=None,
        description="With `watermarked`, where the message speaks for a mark: the key that it speaks for. "
        "By itself it may prove little.",
    )


class CombinedResult(DetectionResult):
    """Outcome for one document, by the likelihood ratio."""

    log10_e: float | None = Field(
        default=None,
        description="log10 of the mean E-value of all keys, versions and readings; 1 / E is a p-value.",
    )
    reader: ReaderState | None = Field(
        default=None,
        description="Whether a language model read the text along; `not_needed`: the answer stood without; "
        "`down`: it does not answer; `none`: there is none, or not for this text or request.",
    )
    scope: Literal["whole", "passages"] | None = Field(
        default=None,
        description="With `watermarked`: whether passages stand out from the rest (`segments`), or the "
        "evidence is of the whole text. Neither says that all words are the model's.",
    )
    marked_share: MarkedShare | None = Field(default=None, description="With `watermarked`.")
    weak: bool | None = Field(
        default=None,
        description="Of a text that was not found: whether the p-value is at most 100 times `fpr`, and at "
        "most 0.01. Too little for a finding, more than chance usually gives.",
    )
    messages: list[ConversationMessage] | None = Field(
        default=None,
        exclude_if=is_none,
        description="Of a conversation: its messages in order. `log10_p` is of the largest E-value so far.",
    )


class CombinedResponse(DetectionResponse):
    """Results in the order of the inputs; of a conversation one."""

    results: list[CombinedResult]  # type: ignore[assignment]
