"""`GET /v1/keys` of the detection service: what a caller can ask with."""

from pydantic import Field

from ttmark.shared.schemas.fields import AnswerModel


class DetectionKeyVersion(AnswerModel):
    """One version of a key, without its secret."""

    version: int
    state: str


class DetectionKey(AnswerModel):
    """A key that the caller may detect with."""

    key_id: str
    profile: str
    scheme: str
    foreign: bool = Field(default=False, description="Whether the key is another system's.")
    block_size: int
    pool: int = Field(default=1, description="Keys of each version; one of them made each completion.")
    payloads: bool = Field(default=False, description="Whether requests choose the pool's key: a payload.")
    tokenizer_fingerprint: str
    tokenizer_available: bool
    versions: list[DetectionKeyVersion]


class DetectionLimits(AnswerModel):
    """What one request may hold."""

    documents: int
    document_tokens: int
    body_bytes: int


class DetectionKeys(AnswerModel):
    """`GET /v1/keys`: what the caller can do here."""

    keys: list[DetectionKey]
    scopes: list[str] = Field(description="Scopes of the access token that was sent.")
    rates: list[float] | None = Field(
        default=None, description="The values of `fpr` that it may ask with; null: any."
    )
    limits: DetectionLimits
