"""`GET /v1/models`: the models, and the watermarks that the caller's keys give them."""

from typing import Literal

from pydantic import BaseModel, Field

from ttmark.shared.schemas.sampling import SamplingDefaults


class ModelProfile(BaseModel):
    """A watermark profile that the caller has keys for."""

    profile: str = Field(description="Profile id, as in the `watermark` block of a response.")
    scheme: str
    block_size: int
    payloads: int | None = Field(
        default=None,
        description="How many payloads its keys take, numbered from 0; null: none, the service draws.",
    )
    key_ids: list[str] = Field(description="The caller's keys that new text can be watermarked with.")


class Model(BaseModel):
    """A model that the service runs."""

    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="Unix time at which the service loaded it.")
    owned_by: str = "ttmark"
    context_length: int = Field(description="Most tokens of prompt and completion together.")
    tokenizer_fingerprint: str = Field(description="What profiles name the model's tokenizer by.")
    chat: bool = Field(description="Whether the tokenizer has a chat template.")
    sampling: SamplingDefaults = Field(
        default_factory=SamplingDefaults, description="What holds where a request does not name it."
    )
    profiles: list[ModelProfile]


class ModelList(BaseModel):
    """All models."""

    object: Literal["list"] = "list"
    data: list[Model]
