"""Models, their watermarks and their tokenizers: `/v1/models`, and `/tokenize`, `/detokenize` as in vLLM."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from ttmark.shared.schemas.fields import InSlices, OnlyFalse, RequestPart, TokenIds
from ttmark.shared.schemas.generation.chat import OF_THE_TEMPLATE, ChatMessage, TemplateVariables
from ttmark.shared.schemas.generation.sampling import SamplingDefaults
from ttmark.shared.schemas.generation.tools import Tools


class ModelProfile(BaseModel):
    """A watermark profile that the caller has keys for."""

    profile: str = Field(description="Profile id, as in the `watermark` block of a response.")
    scheme: str
    block_size: int
    payloads: int | None = Field(
        default=None, description="How many payloads its keys take, from 0 on; null: none."
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


ModelId = Annotated[
    str, Field(min_length=1, max_length=512, description="May be left out where one model is served.")
]

_EXACTLY_ONE: list[JsonValue] = [
    {"required": ["prompt"], "properties": {"prompt": {"type": "string"}, "messages": {"type": "null"}}},
    {"required": ["messages"], "properties": {"messages": {"type": "array"}, "prompt": {"type": "null"}}},
]


class TokenizeRequest(RequestPart):
    """A text, or a conversation that the model's chat template writes."""

    model_config = ConfigDict(json_schema_extra={"oneOf": _EXACTLY_ONE})

    model: ModelId | None = None
    prompt: str | None = None
    messages: Annotated[list[ChatMessage], Field(min_length=1, fail_fast=True), InSlices] | None = None
    add_special_tokens: bool | None = Field(
        default=None,
        description="Whether the tokenizer adds its special tokens to a `prompt`; not beside `messages`.",
    )
    add_generation_prompt: bool | None = Field(
        default=None, description="Whether the opening of an answer ends the conversation."
    )
    return_token_strs: bool | None = Field(default=None, description="Adds `token_strs`.")
    tools: Tools | None = Field(default=None, description="Functions that the chat template shows.")
    chat_template_kwargs: TemplateVariables | None = Field(default=None, description=OF_THE_TEMPLATE)
    continue_final_message: OnlyFalse = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("give exactly one of `prompt` and `messages`")
        return self


class TokenizeResponse(BaseModel):
    """The tokens."""

    count: int
    max_model_len: int = Field(description="Of prompt and completion together.")
    tokens: list[int]
    token_strs: list[str] | None = Field(default=None, description="What the vocabulary calls each token.")


class DetokenizeRequest(RequestPart):
    """Tokens."""

    model: ModelId | None = None
    tokens: TokenIds


class DetokenizeResponse(BaseModel):
    """Their text, special tokens included."""

    prompt: str
