"""The events of a streamed `POST /v1/responses`, in the order in which they come."""

from typing import Any, Literal, TypedDict

from pydantic import BaseModel, Field

from ttmark.shared.schemas.responses import OutputItem, OutputText, ReasoningText, ResponseObject

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


class Place(TypedDict):
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
