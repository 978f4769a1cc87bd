"""Requests and responses of the detection service."""

import base64
import binascii
from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, model_validator

from shared.schemas.fields import NoTruthValue, WholeNumbers

MAX_DOCUMENTS = 256
DEFAULT_FPR = 1e-5

TokenId = Annotated[int, Field(ge=0, lt=2**32 - 1)]  # the last value of 32 bits stands for no token
KeyId = Annotated[str, Field(min_length=1, max_length=128)]
Verdict = Literal["watermarked", "not_detected", "too_short"]


class StrictModel(BaseModel):
    """A body that is what its schema says: no number stands for a truth value, no string for a number.

    An unknown field is an error: a misspelt option must not be ignored silently.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


_EXACTLY_ONE_CONTENT: list[JsonValue] = [
    {"required": ["text"], "properties": {"text": {"type": "string"}, "token_ids": {"type": "null"}}},
    {"required": ["token_ids"], "properties": {"token_ids": {"type": "array"}, "text": {"type": "null"}}},
]


class Document(StrictModel):
    """One document: either its text or its token ids, and an id of the caller's that comes back."""

    model_config = ConfigDict(json_schema_extra={"oneOf": _EXACTLY_ONE_CONTENT})

    id: Annotated[str, Field(max_length=256)] | None = Field(
        default=None, description="Returned unchanged; the index in `inputs` where it is left out."
    )
    text: str | None = None
    token_ids: Annotated[list[TokenId], WholeNumbers] | None = None

    @model_validator(mode="after")
    def _exactly_one_content(self) -> Self:
        if (self.text is None) == (self.token_ids is None):
            raise ValueError("give exactly one of `text` and `token_ids`")
        return self


class DetectionRequest(StrictModel):
    """What all three detection modes share."""

    inputs: Annotated[list[Document], Field(min_length=1, max_length=MAX_DOCUMENTS)]
    keys: Annotated[list[KeyId], Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="Key ids to try; left out: every key that the caller may detect with."
    )
    fpr: Annotated[float, Field(ge=1e-100, le=0.1)] = Field(
        default=DEFAULT_FPR,
        description="False positive rate per document that the verdict is held to, all hypotheses counted.",
    )
    evidence: Literal["none", "blocks"] = Field(
        default="none", description="`blocks` adds the score of each scored block (scope detect:evidence)."
    )
    normalize: bool = Field(
        default=False,
        description="Read texts without invisible characters, look-alike letters and odd white space.",
    )


class DirectRequest(DetectionRequest):
    """Unedited text: blocks at fixed boundaries (paper Eq. 6)."""

    phase: Annotated[Literal[0, "any"], NoTruthValue] = Field(
        default=0, description="`any` tries every block boundary, with correction; for text cut at its start."
    )


class AlignedRequest(DetectionRequest):
    """Edited text: blocks are realigned around insertions and deletions (paper Algorithm 2)."""

    beta: Annotated[float, Field(ge=0, le=100)] = Field(
        default=5.0, description="What skipping a token costs, in standard deviations of a block's score."
    )


class LocalizedRequest(DetectionRequest):
    """Watermarked passages inside a longer document."""

    method: Literal["scan", "waterseeker"] = Field(
        default="scan",
        description="`scan` holds the whole document to `fpr`; `waterseeker` is the published method.",
    )


class DetectedKey(StrictModel):
    """The key version that explains the document best."""

    key_id: str
    version: int
    profile: str


class BlockEvidence(StrictModel):
    """Standardised score of one block; null has mean 0 and variance 1."""

    start_token: int
    end_token: int
    start_char: int | None = None
    end_char: int | None = None
    score: float


class Segment(StrictModel):
    """A watermarked passage: half-open ranges of tokens and of characters of the submitted text."""

    start_token: int
    end_token: int
    start_char: int | None = None
    end_char: int | None = None
    log10_e_value: float | None = Field(
        description="log10 of how many passages this strong are expected in such a document by chance."
    )
    key: DetectedKey


class NormalizationReport(StrictModel):
    """Characters of a text that can hide a watermark, counted by kind."""

    invisible: int = Field(description="Zero-width and other invisible characters.")
    look_alikes: int = Field(description="Letters drawn like Latin ones among Latin letters, or styled.")
    white_space: int = Field(description="Spaces and line ends other than U+0020 and U+000A.")
    undone: bool = Field(description="Whether the text was read without them (`normalize`).")


class DetectionResult(StrictModel):
    """Outcome for one document. Fields beyond the verdict are null without the scope detect:evidence."""

    id: str
    verdict: Verdict
    tokens: int
    hypotheses: int = Field(description="Keys, versions and phases tried; `p_value` is corrected for them.")
    tokens_needed: int | None = Field(
        default=None, description="With `too_short`: how many tokens could be enough at this fpr."
    )
    p_value: float | None = None
    log10_p: float | None = None
    z: float | None = None
    scored_blocks: int | None = None
    key: DetectedKey | None = Field(default=None, description="Set when the verdict is `watermarked`.")
    segments: list[Segment] | None = Field(
        default=None, description="Localized detection: the passages found, in order; they do not overlap."
    )
    evidence: list[BlockEvidence] | None = None
    normalization: NormalizationReport | None = Field(
        default=None, description="Null for a document that came as token ids."
    )


class DetectionResponse(StrictModel):
    """Results in the order of the inputs."""

    results: list[DetectionResult]
    skipped_keys: list[str] = Field(
        default=[],
        description="Keys not tried for want of their tokenizer (only when `keys` is left out).",
    )
    request_id: str


class DetectionKeyVersion(StrictModel):
    """One version of a key, without its secret."""

    version: int
    state: str


class DetectionKey(StrictModel):
    """A key that the caller may detect with."""

    key_id: str
    profile: str
    scheme: str
    block_size: int
    tokenizer_fingerprint: str
    tokenizer_available: bool
    versions: list[DetectionKeyVersion]


class DetectionLimits(StrictModel):
    """What one request may hold."""

    documents: int
    document_tokens: int
    body_bytes: int


class DetectionKeys(StrictModel):
    """`GET /v1/keys`: what the caller can do here."""

    keys: list[DetectionKey]
    scopes: list[str] = Field(description="Scopes of the access token that was sent.")
    limits: DetectionLimits


def _strict_base64(value: object) -> bytes:
    if not isinstance(value, str):
        raise ValueError("must be a string in base64")
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        raise ValueError("must be base64") from None


class ExtractionRequest(StrictModel):
    """A file whose text is wanted."""

    filename: Annotated[str, Field(min_length=1, max_length=256)] = Field(
        description="Its ending says what the file is: txt, md, html or docx."
    )
    content: Annotated[bytes, BeforeValidator(_strict_base64)] = Field(
        description="The file in base64.",
        json_schema_extra={"type": "string", "format": "byte", "contentEncoding": "base64"},
    )


class ExtractionResponse(StrictModel):
    """The text of a file."""

    text: str
