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
        description="Of a key of another system: its scheme, such as `vllm-gumbel`. Keys of this system have "
        "it in `profile`.",
    )
    pool_key: int | None = Field(
        default=None, description="Which key of its pool, from 0 on; null where the pool is one key."
    )
    payload: int | None = Field(
        default=None,
        description="The number that the request for the text chose, where the key takes payloads; null "
        "where the service drew it, and for a document in which several keys of the pool were found.",
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
    log10_e_value: float | None = Field(
        description="log10 of how many passages this strong are expected in such a document by chance."
    )
    key: DetectedKey


class ForeignMarkFound(AnswerModel):
    """The mark of another system in a document."""

    key: DetectedKey
    log10_p: float = Field(description="Corrected for every hypothesis tried, those of other keys included.")
    score: float = Field(
        description="As the other system's detector computes it, of the text or of its best passage."
    )
    scored_tokens: int
    segments: list[Segment] = Field(
        description="Passages, each at `fpr` by itself, on a grid of windows: their ends are in doubt by "
        "half a window. Empty where the text was read as a whole."
    )
