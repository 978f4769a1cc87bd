"""`POST /v1/chat/completions`: OpenAI's chat completion, with our extensions; text only, no tools."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from ttmark.shared.schemas.completions import FinishReason
from ttmark.shared.schemas.fields import NotTaken, OnlyFalse, WholeNumber, is_none, not_supported, says
from ttmark.shared.schemas.request_part import RequestPart
from ttmark.shared.schemas.sampling import ChoiceFields, Usage
from ttmark.shared.schemas.watermark_block import WatermarkBlock

MAX_CHAT_LOGPROBS = 20
NO_TOOLS = says("not supported; response_format with a JSON schema gives answers that a program can read")


class TextPart(RequestPart):
    """A piece of a message's content."""

    type: Literal["text"]
    text: str


class ChatMessage(RequestPart):
    """One message of the conversation so far."""

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


class TextFormat(RequestPart):
    """The answer is any text."""

    type: Literal["text"]


class JsonObjectFormat(RequestPart):
    """The answer is a JSON object; the prompt has to say which."""

    type: Literal["json_object"]


class NamedSchema(RequestPart):
    """A JSON schema."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$", description="Accepted and not looked at.")
    description: str | None = Field(default=None, description="Accepted and not looked at.")
    json_schema: dict[str, Any] = Field(alias="schema", description="What the answer is valid against.")
    strict: bool | None = Field(default=None, description="Accepted; the schema is kept to in any case.")


class JsonSchemaFormat(RequestPart):
    """The answer is JSON that is valid against a schema."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


ResponseFormat = Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")]


_IS_TEXT: JsonValue = {
    "anyOf": [{"type": "null"}, {"type": "object", "properties": {"type": {"const": "text"}}}]
}
_TOGETHER: list[JsonValue] = [
    {
        "anyOf": [
            {"properties": {"top_logprobs": {"enum": [0, None]}}},
            {"required": ["logprobs"], "properties": {"logprobs": {"const": True}}},
        ]
    },
    {
        "anyOf": [
            {"properties": {"response_format": _IS_TEXT}},
            {"properties": {"ignore_eos": {"enum": [False, None]}}},
        ]
    },
]


class ChatRequest(ChoiceFields):
    """A conversation to continue with the assistant's next message."""

    model_config = ConfigDict(json_schema_extra={"allOf": _TOGETHER})

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
    tools: Annotated[Annotated[list[Any], Field(max_length=0)] | None, NO_TOOLS] = None
    functions: Annotated[Annotated[list[Any], Field(max_length=0)] | None, NO_TOOLS] = None
    response_format: ResponseFormat | None = Field(default=None, description="Text by default.")
    modalities: Annotated[list[Literal["text"]] | None, not_supported("text")] = None
    tool_choice: Annotated[Literal["none", "auto"] | None, not_supported("none and auto")] = None
    function_call: Annotated[Literal["none", "auto"] | None, not_supported("none and auto")] = None
    reasoning_effort: Annotated[Literal["none"] | None, not_supported("none")] = None
    verbosity: Annotated[Literal["medium"] | None, not_supported("medium")] = None
    store: OnlyFalse = None
    audio: NotTaken = None
    moderation: NotTaken = None
    web_search_options: NotTaken = None


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
    watermarked: bool | None = Field(
        default=None, exclude_if=is_none, description="In a stream with `watermark.show_blocks`."
    )


class ChatChunk(BaseModel):
    """One event of a stream; `watermark` is in the last one only."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = None
    watermark: WatermarkBlock | None = Field(default=None, exclude_if=is_none)
