"""What was found in a document: keys, passages, scores."""

from enum import StrEnum

from pydantic import Field

from ttmark.shared.schemas.bodies import AnswerModel
from ttmark.shared.schemas.fields import is_none


class Basis(StrEnum):
    """What an answer rests on."""

    WATERMARK = "watermark"
    FOREIGN_WATERMARK = "foreign_watermark"
    METADATA = "metadata"


class DetectedKey(AnswerModel):
    """The key version that explains the document best."""

    key_id: str
    version: int
    profile: str
    scheme: str | None = Field(
        default=None,
        exclude_if=is_none,
        description="Of another system's key: its scheme.",
    )
    pool_key: int | None = Field(default=None, description="Which key of its pool, from 0 on.")
    payload: int | None = Field(
        default=None,
        description="The number that the request for the text chose; null where several keys of the "
        "pool were found.",
    )


class BlockEvidence(AnswerModel):
    """Standardised score of one block, mean 0 and variance 1 without a watermark.

    Direct detection lists the blocks that it sums, all else those of the best alignment, whose mean
    is somewhat above 0 without a watermark: 0.15 for pairs.
    """

    start_token: int
    end_token: int
    start_char: int | None = None
    end_char: int | None = None
    score: float


class Segment(AnswerModel):
    """A watermarked passage: half-open ranges of tokens and of characters of the submitted text."""

    start_token: int
    end_token: int
    start_char: int | None = None
    end_char: int | None = None
    log10_e_value: float | None = Field(description="log10 of how many passages this strong chance gives.")
    key: DetectedKey


class ForeignMarkFound(AnswerModel):
    """The mark of another system in a document."""

    key: DetectedKey
    log10_p: float = Field(description="Corrected for every hypothesis tried.")
    score: float = Field(description="As the other system's detector computes it.")
    scored_tokens: int
    segments: list[Segment] = Field(description="Passages, whose ends are in doubt by half a window.")
