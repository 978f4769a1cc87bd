"""What `POST /v1/responses` takes: OpenAI's Responses API, with our extensions; text only, nothing stored."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue

from ttmark.shared.schemas.fields import (
    Ignored,
    InSlices,
    NonEmptyText,
    NoTruthValue,
    NotTaken,
    OnlyFalse,
    RequestPart,
    WholeNumber,
    not_supported,
    says,
)
from ttmark.shared.schemas.generation.chat import (
    IS_TEXT,
    ChatMessage,
    JsonObjectFormat,
    JsonSchemaFormat,
    NamedSchema,
    ResponseFormat,
    TextFormat,
    TextPart,
)
from ttmark.shared.schemas.generation.sampling import SamplingFields, StreamOptions
from ttmark.shared.schemas.generation.tools import (
    AnyFunction,
    CalledFunction,
    FunctionChoice,
    FunctionName,
    FunctionTools,
    NamedTool,
    Tool,
    ToolCall,
    ToolChoice,
)

MAX_METADATA = 16


class InputPart(RequestPart):
    """A piece of a message's content: what a user wrote, or what an earlier response said."""

    type: Literal["input_text", "output_text"]
    text: str
    annotations: Ignored = None
    logprobs: Ignored = None
    prompt_cache_breakpoint: Ignored = None


def _only_reasons(message: ChatMessage) -> bool:
    return message.reasoning_content is not None and not message.content and not message.tool_calls


def _content_of(content: str | list[InputPart]) -> str | list[TextPart]:
    if isinstance(content, str):
        return content
    return [TextPart(type="text", text=part.text) for part in content]


class InputMessage(RequestPart):
    """One message of the conversation so far."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[list[InputPart], Field(fail_fast=True), InSlices]
    id: Ignored = None
    status: Ignored = None
    phase: Ignored = None
    token_ids: Ignored = None
    prompt_token_ids: Ignored = None


class InputCall(RequestPart):
    """A call that an earlier response made."""

    type: Literal["function_call"]
    call_id: str
    name: FunctionName
    arguments: str
    id: Ignored = None
    status: Ignored = None
    token_ids: Ignored = None
    prompt_token_ids: Ignored = None

    @property
    def made(self) -> ToolCall:
        """The call as the chat API writes it."""
        return ToolCall(id=self.call_id, function=CalledFunction(name=self.name, arguments=self.arguments))


class InputResult(RequestPart):
    """What a called function returned."""

    type: Literal["function_call_output"]
    call_id: str
    output: str | Annotated[list[InputPart], Field(fail_fast=True), InSlices]
    id: Ignored = None
    status: Ignored = None


class InputReasoningPart(RequestPart):
    """A piece of reasoning."""

    type: Literal["reasoning_text"]
    text: str


class InputReasoning(RequestPart):
    """What an earlier response reasoned before its message or calls."""

    type: Literal["reasoning"]
    content: Annotated[list[InputReasoningPart], Field(fail_fast=True)] | None = None
    id: Ignored = None
    status: Ignored = None
    summary: Ignored = None
    encrypted_content: Ignored = None
    token_ids: Ignored = None
    prompt_token_ids: Ignored = None


InputItem = InputMessage | InputCall | InputResult | InputReasoning


class SchemaFormat(NamedSchema):
    """The text is JSON that is valid against a schema."""

    model_config = ConfigDict(serialize_by_alias=True)

    type: Literal["json_schema"]


OutputFormat = Annotated[TextFormat | JsonObjectFormat | SchemaFormat, Field(discriminator="type")]


class TextOptions(RequestPart):
    """How the text is written."""

    format: OutputFormat | None = Field(default=None, description="Text by default.")
    verbosity: Annotated[Literal["medium"] | None, not_supported("medium")] = None


class ReasoningOptions(RequestPart):
    """How much the model reasons before it answers: it does not."""

    effort: Annotated[Literal["none"] | None, not_supported("none")] = None
    summary: Ignored = None
    generate_summary: Ignored = None
    context: Ignored = None
    mode: Ignored = None


Input = Annotated[
    NonEmptyText | Annotated[list[InputItem], Field(min_length=1, fail_fast=True), InSlices],
    says(
        "must be a non-empty string or a list of items: messages with a role (system, developer, user, "
        "assistant) and content (a string, or parts of type input_text or output_text), reasoning, "
        "function_call and function_call_output. Nothing is stored, so items cannot be referred to"
    ),
]
Metadata = Annotated[
    dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
    Field(max_length=MAX_METADATA),
    says(f"must map at most {MAX_METADATA} names of 64 characters to texts of 512"),
]
Nothing = Annotated[list[Any], Field(max_length=0)]


_HELD_TO_NOTHING: JsonValue = {
    "anyOf": [
        {"type": "null"},
        {"type": "object", "properties": {"format": IS_TEXT}},
    ]
}
_TOGETHER: list[JsonValue] = [
    {"properties": {"text": _HELD_TO_NOTHING}},
    {"properties": {"ignore_eos": {"enum": [False, None]}}},
]


class ResponsesRequest(SamplingFields):
    """A conversation to answer."""

    model_config = ConfigDict(json_schema_extra={"anyOf": _TOGETHER})

    input: Input = Field(description="The user's message, or the conversation.")
    instructions: str | None = Field(default=None, description="A system message in front of `input`.")
    max_output_tokens: Annotated[int, Field(ge=1), WholeNumber] | None = Field(
        default=None, description="Most tokens of the answer."
    )
    metadata: Metadata | None = Field(default=None, description="Comes back in the response.")
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    background: OnlyFalse = None
    truncation: Annotated[Literal["disabled"] | None, not_supported("disabled")] = None
    tools: FunctionTools | None = Field(default=None, description="Functions that the model may call.")
    tool_choice: AnyFunction | None = Field(
        default=None, description="By default `auto` where there are tools."
    )
    parallel_tool_calls: bool | None = Field(default=None, description="`false`: one call at most.")
    include: Annotated[Nothing | None, not_supported()] = None
    context_management: Annotated[Nothing | None, not_supported()] = None
    top_logprobs: Annotated[Literal[0] | None, NoTruthValue, not_supported("0")] = None
    previous_response_id: Annotated[None, says("not supported: nothing is stored; send the conversation")] = (
        None
    )
    conversation: NotTaken = None
    prompt: NotTaken = None
    moderation: NotTaken = None
    access_programs: NotTaken = None
    background_options: NotTaken = None
    image: Ignored = None
    max_tool_calls: Ignored = None
    stream_options: StreamOptions | None = Field(default=None, description="Accepted and not looked at.")

    @property
    def messages(self) -> list[ChatMessage]:
        """Instructions and input as one conversation: reasoning, message and calls are one answer."""
        messages = [ChatMessage(role="system", content=self.instructions)] if self.instructions else []
        if isinstance(self.input, str):
            return [*messages, ChatMessage(role="user", content=self.input)]
        for item in self.input:
            match item:
                case InputReasoning(content=parts):
                    reasoning = "".join(part.text for part in parts or ())
                    messages.append(ChatMessage(role="assistant", content="", reasoning_content=reasoning))
                case InputCall():
                    if not messages or messages[-1].role != "assistant":
                        messages.append(ChatMessage(role="assistant", content="", tool_calls=[]))
                    messages[-1].tool_calls = messages[-1].tool_calls or []
                    messages[-1].tool_calls.append(item.made)
                case InputResult():
                    output = _content_of(item.output)
                    messages.append(ChatMessage(role="tool", tool_call_id=item.call_id, content=output))
                case InputMessage(role="assistant") if messages and _only_reasons(messages[-1]):
                    messages[-1].content = _content_of(item.content)
                case InputMessage():
                    messages.append(ChatMessage(role=item.role, content=_content_of(item.content)))
        return messages

    @property
    def chat_tools(self) -> list[Tool]:
        """The tools as the chat API writes them."""
        return [Tool(type="function", function=tool) for tool in self.tools or ()]

    @property
    def chat_tool_choice(self) -> ToolChoice | None:
        """Which of them are to be called, likewise."""
        choice = self.tool_choice
        return NamedTool(type="function", function=choice) if isinstance(choice, FunctionChoice) else choice

    @property
    def response_format(self) -> ResponseFormat | None:
        """The form of the answer, as the chat API writes it."""
        form = self.text.format if self.text else None
        return JsonSchemaFormat(type=form.type, json_schema=form) if isinstance(form, SchemaFormat) else form
