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
        description="How many payloads its keys take, from 0 on; null: none.",
    )
    key_ids: list[str] = Field(description="The caller's keys that can mark.")


class Model(BaseModel):
    """A model that the service runs."""

    id: str
    object: Literal["model"] = "model"
    created: int = Field(description="When it was loaded, in Unix time.")
    owned_by: str = "ttmark"
    context_length: int = Field(description="Of prompt and completion together.")
    tokenizer_fingerprint: str = Field(description="Names the tokenizer in profiles.")
    chat: bool = Field(description="Whether the tokenizer has a chat template.")
    sampling: SamplingDefaults = Field(
        default_factory=SamplingDefaults, description="Where a request names none."
    )
    profiles: list[ModelProfile]


class ModelList(BaseModel):
    """All models."""

    object: Literal["list"] = "list"
    data: list[Model]
