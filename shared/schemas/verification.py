"""`POST /v1/watermark/verify`: a verdict, with what the model says of the text."""

from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from ttmark.shared.schemas.detection import DEFAULT_FPR, EXACTLY_ONE_CONTENT, DetectedKey, KeyId
from ttmark.shared.schemas.fields import AnswerModel, NonEmptyText, TokenIds
from ttmark.shared.schemas.readings import PROMPT_OR_MESSAGES, Origin


class VerificationRequest(Origin):
    """A text, what it answers, and the sampling at which it is supposed to have been made."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": EXACTLY_ONE_CONTENT,
            "anyOf": PROMPT_OR_MESSAGES,
        }
    )

    model: str = Field(min_length=1, max_length=512, description="As GET /v1/models lists it.")
    text: NonEmptyText | None = None
    token_ids: TokenIds | None = None
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
