"""What `POST /v1/responses` answers, whole or in the events of `response_events`."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from ttmark.shared.schemas.fields import is_none
from ttmark.shared.schemas.responses_request import OutputFormat
from ttmark.shared.schemas.tools import FunctionChoice, FunctionTool
from ttmark.shared.schemas.watermark_block import WatermarkBlock

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
    token_ids: list[int] | None = Field(
        default=None, exclude_if=is_none, description="Of the whole answer, in its first item."
    )
    prompt_token_ids: list[int] | None = Field(default=None, exclude_if=is_none)


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
    arguments: str = Field(description="JSON that is valid against the schema, unless the answer was cut.")


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
    text: TextConfig
    tool_choice: Literal["none", "auto", "required"] | FunctionChoice
    tools: list[FunctionTool]
    truncation: Literal["disabled"] = "disabled"
    usage: ResponseUsage | None = None
    watermark: WatermarkBlock | None = Field(default=None, exclude_if=is_none)
