"""`POST /v1/chat/completions`: OpenAI's chat completion, with our extensions; text only, no tools."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from shared.schemas.completions import FinishReason
from shared.schemas.fields import WholeNumber, is_none, not_supported, says
from shared.schemas.sampling import SamplingFields, Usage
from shared.schemas.watermark_block import WatermarkBlock

MAX_CHAT_LOGPROBS = 20


class TextPart(BaseModel):
    """A piece of a message's content."""

    model_config = ConfigDict(extra="ignore", strict=True)

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One message of the conversation so far."""

    model_config = ConfigDict(extra="ignore", strict=True)

    role: Annotated[
        Literal["system", "developer", "user", "assistant"],
        says("must be system, developer, user or assistant; tools are not supported"),
    ]
    content: Annotated[
        str | Annotated[list[TextPart], Field(fail_fast=True)],
        says("must be a string or a list of text parts; nothing else is supported"),
    ]

    @property
    def text(self) -> str:
        """The content as one string."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class TextFormat(BaseModel):
    """The only response format: text."""

    type: Literal["text"]


class ChatRequest(SamplingFields):
    """A conversation to continue with the assistant's next message."""

    messages: Annotated[list[ChatMessage], Field(fail_fast=True)] = Field(min_length=1)
    max_tokens: Annotated[int, Field(ge=1), WholeNumber] | None = Field(
        default=None, description="Older name of `max_completion_tokens`, which wins over it."
    )
    max_completion_tokens: Annotated[int, Field(ge=1), WholeNumber] | None = Field(
        default=None,
        description="Most tokens of the message; by default what the context holds.",
    )
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_CHAT_LOGPROBS), WholeNumber] | None = Field(
        default=None, description="Alternatives per token; needs `logprobs`."
    )
    tools: Annotated[Annotated[list[Any], Field(max_length=0)] | None, not_supported()] = None
    functions: Annotated[Annotated[list[Any], Field(max_length=0)] | None, not_supported()] = None
    response_format: Annotated[TextFormat | None, not_supported("text")] = None
    modalities: Annotated[list[Literal["text"]] | None, not_supported("text")] = None


class ChatTopLogprob(BaseModel):
    """A token that could have been chosen."""

    token: str
    logprob: float
    bytes: list[int] | None = None


class ChatTokenLogprob(ChatTopLogprob):
    """A token of the message, with the likeliest alternatives."""

    top_logprobs: list[ChatTopLogprob]


class ChatLogprobs(BaseModel):
    """One entry per token of the message."""

    content: list[ChatTokenLogprob]


class AssistantMessage(BaseModel):
    """The message that was generated."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class ChatChoice(BaseModel):
    """One generated message."""

    index: int
    message: AssistantMessage
    logprobs: ChatLogprobs | None = None
    finish_reason: FinishReason
    token_ids: list[int] | None = Field(default=None, exclude_if=is_none)
    prompt_token_ids: list[int] | None = Field(default=None, exclude_if=is_none)


class ChatResponse(BaseModel):
    """The answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int = Field(description="Unix time in seconds.")
    model: str
    choices: list[ChatChoice]
    usage: Usage
    watermark: WatermarkBlock


class ChatDelta(BaseModel):
    """What a chunk adds to a message."""

    role: Literal["assistant"] | None = Field(default=None, exclude_if=is_none)
    content: str | None = Field(default=None, exclude_if=is_none)


class ChatChunkChoice(BaseModel):
    """A piece of one message."""

    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None = None
    finish_reason: FinishReason | None = None
    token_ids: list[int] | None = Field(default=None, exclude_if=is_none)
    prompt_token_ids: list[int] | None = Field(default=None, exclude_if=is_none)


class ChatChunk(BaseModel):
    """One event of a stream; `watermark` is in the last one only."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = Field(default=None, exclude_if=is_none)
    watermark: WatermarkBlock | None = Field(default=None, exclude_if=is_none)
