"""`POST /v1/chat/completions`: OpenAI's chat completion, with our extensions; text and tools."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from ttmark.shared.schemas.fields import (
    Ignored,
    InSlices,
    NotTaken,
    OnlyFalse,
    OnlyTrue,
    RequestPart,
    WholeNumber,
    left_out,
    not_supported,
    says,
)
from ttmark.shared.schemas.generation.completions import FinishReason
from ttmark.shared.schemas.generation.sampling import Choice, ChoiceFields, LarkGrammar, Regex, Usage
from ttmark.shared.schemas.generation.tools import CallDelta, MadeCall, ToolCall, ToolChoice, Tools
from ttmark.shared.schemas.generation.watermark_block import WatermarkBlock
from ttmark.shared.schemas.slices import few

MAX_CHAT_LOGPROBS = 20
ChatFinishReason = FinishReason | Literal["tool_calls"]
USE_TOOLS = not_supported("tools and tool_choice")
OF_THE_TEMPLATE = "Further variables of the chat template, such as `enable_thinking`."
TemplateVariables = Annotated[
    dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")], JsonValue],
    # As for `logit_bias`.
    Field(max_length=32, json_schema_extra={"additionalProperties": False}),
    few(10_000),
    says("must map at most 32 names to values, with 10,000 values in all"),
]


class TextPart(RequestPart):
    """A piece of a message's content."""

    type: Literal["text"]
    text: str
    cache_control: Ignored = None
    prompt_cache_breakpoint: Ignored = None


_TOLD: list[JsonValue] = [
    {
        "anyOf": [
            {"required": ["content"], "properties": {"content": {"not": {"type": "null"}}}},
            {"required": ["tool_calls"], "properties": {"tool_calls": {"type": "array", "minItems": 1}}},
            {"required": ["reasoning_content"], "properties": {"reasoning_content": {"type": "string"}}},
            {"required": ["reasoning"], "properties": {"reasoning": {"type": "string"}}},
        ]
    },
    {
        "anyOf": [
            {"properties": {"role": {"not": {"const": "tool"}}}},
            {"required": ["tool_call_id"], "properties": {"tool_call_id": {"type": "string"}}},
        ]
    },
]


class ChatMessage(RequestPart):
    """One message of the conversation so far."""

    model_config = ConfigDict(json_schema_extra={"allOf": _TOLD})

    role: Annotated[
        Literal["system", "developer", "user", "assistant", "tool"],
        says("must be system, developer, user, assistant or tool"),
    ]
    tool_calls: Annotated[list[ToolCall], Field(fail_fast=True)] | None = Field(
        default=None, description="Of an assistant: the calls that it made."
    )
    tool_call_id: str | None = Field(
        default=None, validate_default=True, description="Of a tool: the call that this answers."
    )
    reasoning_content: str | None = Field(
        default=None, description="Of an assistant: its reasoning, which the chat template may look at."
    )
    reasoning: str | None = Field(default=None, description="Newer name of `reasoning_content`.")
    content: Annotated[
        str | Annotated[list[TextPart], Field(fail_fast=True), InSlices] | None,
        says("must be a string or a list of text parts; nothing else is supported"),
    ] = Field(
        default=None,
        validate_default=True,
        description="May be null beside `tool_calls` or `reasoning_content` alone.",
    )
    function_call: NotTaken = None
    audio: NotTaken = None
    name: Ignored = None
    refusal: Ignored = None
    annotations: Ignored = None

    @field_validator("tool_call_id")
    @classmethod
    def _names_a_call(cls, call: str | None, info: ValidationInfo) -> str | None:
        if call is None and info.data.get("role") == "tool":
            raise PydanticCustomError("missing", "is missing: a tool answers a call")
        return call

    @field_validator("content")
    @classmethod
    def _is_there(cls, content: Any, info: ValidationInfo) -> Any:
        thoughts = (info.data.get("reasoning_content"), info.data.get("reasoning"))
        told = info.data.get("tool_calls") or thoughts != (None, None)
        if content is None and not told:
            message = "is missing; it may be null beside tool_calls or reasoning_content alone"
            raise PydanticCustomError("missing", message)
        return content

    @property
    def thoughts(self) -> str | None:
        """The reasoning, whatever the caller calls it."""
        return self.reasoning if self.reasoning_content is None else self.reasoning_content

    @property
    def text(self) -> str:
        """The content as one string; parts are lines of it."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "\n".join(part.text for part in self.content)


class TextFormat(RequestPart):
    """The answer is any text."""

    type: Literal["text"]


class JsonObjectFormat(RequestPart):
    """The answer is a JSON object; the prompt has to say which, or `schema`, as for llama.cpp."""

    type: Literal["json_object"]
    json_schema: dict[str, Any] | None = Field(
        default=None, alias="schema", description="What the answer is valid against."
    )


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


class RegexFormat(RequestPart):
    """The answer as a whole matches a regular expression."""

    type: Literal["regex"]
    regex: Regex


class ChoiceFormat(RequestPart):
    """The answer is one of some texts."""

    type: Literal["choice"]
    choice: Choice


class GrammarFormat(RequestPart):
    """The answer is a text of a grammar."""

    type: Literal["grammar"]
    grammar: LarkGrammar


ResponseFormat = Annotated[
    TextFormat | JsonObjectFormat | JsonSchemaFormat | RegexFormat | ChoiceFormat | GrammarFormat,
    Field(discriminator="type"),
]


IS_TEXT: JsonValue = {
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
            {"properties": {"response_format": IS_TEXT}},
            {
                "properties": {
                    "ignore_eos": {"enum": [False, None]},
                    "min_tokens": {"enum": [0, None]},
                    "bad_words": {"anyOf": [{"type": "null"}, {"maxItems": 0}]},
                }
            },
        ]
    },
]


class ChatRequest(ChoiceFields):
    """A conversation to continue with the assistant's next message."""

    model_config = ConfigDict(json_schema_extra={"allOf": _TOGETHER})

    messages: Annotated[list[ChatMessage], Field(fail_fast=True), InSlices] = Field(min_length=1)
    max_tokens: Annotated[int, Field(ge=1), WholeNumber] | None = Field(
        default=None, description="Older name of `max_completion_tokens`."
    )
    max_completion_tokens: Annotated[int, Field(ge=1), WholeNumber] | None = Field(
        default=None, description="Most tokens of the message."
    )
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_CHAT_LOGPROBS), WholeNumber] | None = Field(
        default=None, description="Alternatives per token; needs `logprobs`."
    )
    tools: Tools | None = Field(default=None, description="Functions that the model may call.")
    tool_choice: ToolChoice | None = Field(
        default=None, description="By default `auto` where there are tools."
    )
    parallel_tool_calls: bool | None = Field(default=None, description="`false`: one call at most.")
    functions: Annotated[Annotated[list[Any], Field(max_length=0)] | None, USE_TOOLS] = None
    response_format: ResponseFormat | None = Field(default=None, description="Text by default.")
    modalities: Annotated[list[Literal["text"]] | None, not_supported("text")] = None
    function_call: Annotated[Literal["none", "auto"] | None, not_supported("none and auto")] = None
    reasoning_effort: Annotated[Literal["none"] | None, not_supported("none")] = None
    verbosity: Annotated[Literal["medium"] | None, not_supported("medium")] = None
    audio: NotTaken = None
    moderation: NotTaken = None
    web_search_options: NotTaken = None
    chat_template_kwargs: TemplateVariables | None = Field(default=None, description=OF_THE_TEMPLATE)
    add_generation_prompt: OnlyTrue = None
    continue_final_message: OnlyFalse = None
    prediction: Ignored = None


class ChatTopLogprob(BaseModel):
    """A token that could have been chosen."""

    token: str
    logprob: float
    bytes: list[int] | None = None


class ChatTokenLogprob(ChatTopLogprob):
    """A token of the message, with the likeliest alternatives."""

    top_logprobs: list[ChatTopLogprob]


class ChatLogprobs(BaseModel):
    """One entry per token, reasoning and its tags included."""

    content: list[ChatTokenLogprob]


class AssistantMessage(BaseModel):
    """The message that was generated."""

    role: Literal["assistant"] = "assistant"
    reasoning_content: str | None = left_out("What the model wrote between the tags of its reasoning.")
    content: str | None
    refusal: None = None
    tool_calls: list[MadeCall] | None = left_out()


class ChatChoice(BaseModel):
    """One generated message."""

    index: int
    message: AssistantMessage
    logprobs: ChatLogprobs | None = None
    finish_reason: ChatFinishReason
    token_ids: list[int] | None = left_out()
    prompt_token_ids: list[int] | None = left_out()


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

    role: Literal["assistant"] | None = left_out()
    reasoning_content: str | None = left_out()
    content: str | None = left_out()
    tool_calls: list[CallDelta] | None = left_out()


class ChatChunkChoice(BaseModel):
    """A piece of one message."""

    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None = None
    finish_reason: ChatFinishReason | None = None
    token_ids: list[int] | None = left_out()
    prompt_token_ids: list[int] | None = left_out()
    watermarked: bool | None = left_out("In a stream with `watermark.show_blocks`.")


class ChatChunk(BaseModel):
    """One event of a stream; `watermark` is in the last one only."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | None = None
    watermark: WatermarkBlock | None = left_out()
