"""What `POST /v1/responses` takes: OpenAI's Responses API, with our extensions; text only, nothing stored."""

from typing import Annotated, Any, Literal

from pydantic import Field

from ttmark.shared.schemas.chat import ChatMessage
from ttmark.shared.schemas.fields import (
    Ignored,
    NonEmptyText,
    NoTruthValue,
    NotTaken,
    OnlyFalse,
    WholeNumber,
    not_supported,
    says,
)
from ttmark.shared.schemas.request_part import RequestPart
from ttmark.shared.schemas.sampling import SamplingFields, StreamOptions

MAX_METADATA = 16


class InputPart(RequestPart):
    """A piece of a message's content: what a user wrote, or what an earlier response said."""

    type: Literal["input_text", "output_text"]
    text: str
    annotations: Ignored = None
    logprobs: Ignored = None
    prompt_cache_breakpoint: Ignored = None


class InputMessage(RequestPart):
    """One message of the conversation so far."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | Annotated[list[InputPart], Field(fail_fast=True)]
    id: Ignored = None
    status: Ignored = None
    phase: Ignored = None
    token_ids: Ignored = None
    prompt_token_ids: Ignored = None

    @property
    def text(self) -> str:
        """The content as one string."""
        return self.content if isinstance(self.content, str) else "".join(part.text for part in self.content)


class TextOptions(RequestPart):
    """How the text is written: as text."""

    class Format(RequestPart):
        """The only format."""

        type: Literal["text"]

    format: Annotated[Format | None, not_supported("text")] = None
    verbosity: Annotated[Literal["medium"] | None, not_supported("medium")] = None


class ReasoningOptions(RequestPart):
    """How much the model reasons before it answers: it does not."""

    effort: Annotated[Literal["none"] | None, not_supported("none")] = None
    summary: Ignored = None
    generate_summary: Ignored = None
    context: Ignored = None
    mode: Ignored = None


Input = Annotated[
    NonEmptyText | Annotated[list[InputMessage], Field(min_length=1, fail_fast=True)],
    says(
        "must be a non-empty string or a list of messages, each with a role (system, developer, user, "
        "assistant) and content (a string, or parts of type input_text or output_text)"
    ),
]
Metadata = Annotated[
    dict[
        Annotated[str, Field(max_length=64)],
        Annotated[str, Field(max_length=512)],
    ],
    Field(max_length=MAX_METADATA),
    says(f"must map at most {MAX_METADATA} names of 64 characters to texts of 512"),
]
Nothing = Annotated[list[Any], Field(max_length=0)]


class ResponsesRequest(SamplingFields):
    """A conversation to answer."""

    input: Input = Field(description="The user's message, or the conversation.")
    instructions: str | None = Field(default=None, description="A system message in front of `input`.")
    max_output_tokens: Annotated[int, Field(ge=1), WholeNumber] | None = Field(
        default=None, description="Most tokens of the answer; by default what the context holds."
    )
    metadata: Metadata | None = Field(default=None, description="Comes back in the response.")
    text: TextOptions | None = None
    reasoning: ReasoningOptions | None = None
    background: OnlyFalse = None
    truncation: Annotated[Literal["disabled"] | None, not_supported("disabled")] = None
    tools: Annotated[Nothing | None, not_supported()] = None
    tool_choice: Annotated[Literal["none", "auto"] | None, not_supported("none and auto")] = None
    include: Annotated[Nothing | None, not_supported()] = None
    context_management: Annotated[Nothing | None, not_supported()] = None
    top_logprobs: Annotated[Literal[0] | None, NoTruthValue, not_supported("0")] = None
    previous_response_id: NotTaken = None
    conversation: NotTaken = None
    prompt: NotTaken = None
    moderation: NotTaken = None
    access_programs: NotTaken = None
    image: Ignored = None
    max_tool_calls: Ignored = None
    parallel_tool_calls: Ignored = None
    stream_options: StreamOptions | None = Field(default=None, description="Accepted and not looked at.")

    @property
    def messages(self) -> list[ChatMessage]:
        """Instructions and input as one conversation."""
        first = [ChatMessage(role="system", content=self.instructions)] if self.instructions else []
        if isinstance(self.input, str):
            return [*first, ChatMessage(role="user", content=self.input)]
        return [*first, *(ChatMessage(role=item.role, content=item.text) for item in self.input)]
