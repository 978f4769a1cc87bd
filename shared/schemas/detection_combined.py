"""What `POST /v1/detect` answers beyond the three modes."""

from typing import Literal

from pydantic import Field

from ttmark.shared.schemas.bodies import AnswerModel
from ttmark.shared.schemas.detection import DetectionResponse, DetectionResult


class MarkedShare(AnswerModel):
    """How much of a text stands in passages that carry the mark, words edited inside of them included."""

    estimate: float = Field(ge=0, le=1)
    low: float = Field(ge=0, le=1, description="Lower end of an interval that holds 95 % of true shares.")
    high: float = Field(ge=0, le=1)


class CombinedResult(DetectionResult):
    """Outcome for one document: the best of direct, aligned and localized detection."""

    explained_by: Literal["direct", "aligned", "localized"] | None = Field(
        default=None, description="With `watermarked`: the detector whose p-value counts."
    )
    scope: Literal["whole", "passages"] | None = Field(
        default=None,
        description="With `watermarked`: `passages` where passages stand out from the rest, listed in "
        "`segments`; `whole` where the evidence is of the text as a whole. Neither says that all words are "
        "the model's.",
    )
    marked_share: MarkedShare | None = Field(default=None, description="With `watermarked`.")
    weak: bool | None = Field(
        default=None,
        description="Of a text that was not found: whether the p-value is at most 100 times `fpr`, and at "
        "most 0.01. Too little for a finding, more than chance usually gives.",
    )


class CombinedResponse(DetectionResponse):
    """Results in the order of the inputs."""

    results: list[CombinedResult]  # type: ignore[assignment]
