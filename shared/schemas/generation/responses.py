"""What `POST /v1/responses` answers, whole or in events, which come in the order that they stand in here."""

from typing import Annotated, Any, Literal, TypedDict

from pydantic import BaseModel, Field

from ttmark.shared.schemas.fields import left_out
from ttmark.shared.schemas.generation.responses_request import OutputFormat
from ttmark.shared.schemas.generation.tools import FunctionChoice, FunctionTool
from ttmark.shared.schemas.generation.watermark_block import WatermarkBlock

ResponseStatus = Literal["in_progress", "completed", "incomplete", "failed"]
ItemStatus = Literal["in_progress", "completed", "incomplete"]


class OutputText(BaseModel):
    """The text of a message."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[Any] = Field(default=[], description="Always empty.")
    logprobs: list[Any] = Field(default=[], description="Always empty.")


class _Output(BaseModel):
    id: str
    status: ItemStatus = "in_progress"
    token_ids: list[int] | None = left_out("Of the whole answer, in its first item.")
    prompt_token_ids: list[int] | None = left_out()


class OutputMessage(_Output):
    """The message that was generated."""

    type: Literal["message"] = "message"
    role: Literal["assistant"] = "assistant"
    content: list[OutputText]


class OutputCall(_Output):
    """A call of a function."""

    type: Literal["function_call"] = "function_call"
    call_id: str
    name: str
    arguments: str = Field(description="JSON by the schema, unless the answer was cut.")


class ReasoningText(BaseModel):
    """The text of reasoning."""

    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class OutputReasoning(_Output):
    """What the model wrote between the tags of its reasoning."""

    type: Literal["reasoning"] = "reasoning"
    summary: list[Any] = Field(default=[], description="Always empty.")
    content: list[ReasoningText]


OutputItem = Annotated[OutputReasoning | OutputMessage | OutputCall, Field(discriminator="type")]


class InputTokensDetails(BaseModel):
    """Prompt tokens that were found in the cache and not computed again."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputTokensDetails(BaseModel):
    """Tokens that are reasoning, and not of the message or calls."""

    reasoning_tokens: int = 0


class ResponseUsage(BaseModel):
    """Token counts."""

    input_tokens: int
    input_tokens_details: InputTokensDetails = InputTokensDetails()
    output_tokens: int
    output_tokens_details: OutputTokensDetails = OutputTokensDetails()
    total_tokens: int


class IncompleteDetails(BaseModel):
    """Why the text ends where it does."""

    reason: Literal["max_output_tokens"] = "max_output_tokens"


class ResponseFailure(BaseModel):
    """Why there is no answer, in the few words that the API has for it."""

    code: Literal["server_error"] = "server_error"
    message: str


class TextConfig(BaseModel):
    """How the text was written."""

    format: OutputFormat


class ResponseObject(BaseModel):
    """The answer; in a stream, as far as it has come."""

    id: str
    object: Literal["response"] = "response"
    created_at: int = Field(description="Unix time in seconds.")
    completed_at: int | None
    status: ResponseStatus
    error: ResponseFailure | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: str | None
    max_output_tokens: int | None
    metadata: dict[str, str]
    model: str
    output: list[OutputItem]
    parallel_tool_calls: bool
    previous_response_id: None = None
    background: Literal[False] = False
    store: Literal[False] = False
    temperature: float
    top_p: float
    presence_penalty: float
    frequency_penalty: float
    top_logprobs: Literal[0] = 0
    reasoning: None = None
    max_tool_calls: None = None
    service_tier: Literal["default"] = "default"
    safety_identifier: None = None
    prompt_cache_key: None = None
    text: TextConfig
    tool_choice: Literal["none", "auto", "required"] | FunctionChoice
    tools: list[FunctionTool]
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    watermark: WatermarkBlock | None = left_out()


PROGRESS = Literal["response.created", "response.in_progress"]
OUTCOME = Literal["response.completed", "response.incomplete", "response.failed"]


class ResponseEvent(BaseModel):
    """One event; its type is in `type` and in the event's `event` line."""

    type: str
    sequence_number: int = Field(description="0 for the first event of the stream, then one more each.")


class LifecycleEvent(ResponseEvent):
    """The response as far as it has come, at the start; the whole of it at the end."""

    type: PROGRESS | OUTCOME
    response: ResponseObject


class OutputItemEvent(ResponseEvent):
    """Reasoning, the message or a call, empty and later whole."""

    type: Literal["response.output_item.added", "response.output_item.done"]
    output_index: int
    item: OutputItem


class ItemPlace(TypedDict):
    """What events inside an item have in common."""

    item_id: str
    output_index: int
    sequence_number: int


class _InItem(ResponseEvent):
    item_id: str
    output_index: int


class _InMessage(_InItem):
    content_index: Literal[0] = 0


class ContentPartEvent(_InMessage):
    """The text of the message or of reasoning, empty and later whole."""

    type: Literal["response.content_part.added", "response.content_part.done"]
    part: OutputText | ReasoningText


class TextDeltaEvent(_InMessage):
    """More text."""

    type: Literal["response.output_text.delta"] = "response.output_text.delta"
    delta: str
    logprobs: list[Any] = Field(default=[], description="Always empty.")


class TextDoneEvent(_InMessage):
    """All of the text."""

    type: Literal["response.output_text.done"] = "response.output_text.done"
    text: str
    logprobs: list[Any] = Field(default=[], description="Always empty.")


class ReasoningDeltaEvent(_InMessage):
    """More reasoning."""

    type: Literal["response.reasoning_text.delta"] = "response.reasoning_text.delta"
    delta: str


class ReasoningDoneEvent(_InMessage):
    """All of the reasoning."""

    type: Literal["response.reasoning_text.done"] = "response.reasoning_text.done"
    text: str


class ArgumentsDeltaEvent(_InItem):
    """More of a call's arguments."""

    type: Literal["response.function_call_arguments.delta"] = "response.function_call_arguments.delta"
    delta: str


class ArgumentsDoneEvent(_InItem):
    """All of a call's arguments."""

    type: Literal["response.function_call_arguments.done"] = "response.function_call_arguments.done"
    name: str
    arguments: str


class FailureEvent(ResponseEvent):
    """Why the stream cannot go on; `response.failed` follows."""

    type: Literal["error"] = "error"
    code: str
    message: str
    param: str | None = None


RESPONSE_EVENTS: tuple[type[ResponseEvent], ...] = (
    LifecycleEvent,
    OutputItemEvent,
    ContentPartEvent,
    TextDeltaEvent,
    TextDoneEvent,
    ReasoningDeltaEvent,
    ReasoningDoneEvent,
    ArgumentsDeltaEvent,
    ArgumentsDoneEvent,
    FailureEvent,
)
