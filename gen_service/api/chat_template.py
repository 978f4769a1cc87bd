"""From a conversation to the text that the model continues, by the tokenizer's own template."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from jinja2 import TemplateError

from ttmark.gen_service.api.template_sandbox import BoundedEnvironment, TemplateTooLarge
from ttmark.gen_service.api.tool_formats import calls_text, format_of, system_text
from ttmark.shared.http.request_body import HttpLimits, parse_json
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded, MalformedJson
from ttmark.shared.schemas.chat import ChatMessage
from ttmark.shared.schemas.tools import ToolCall


def turns(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """The messages, for a template that knows tools: arguments are values, results name their function."""
    names = {call.id: call.function.name for message in messages for call in message.tool_calls or ()}
    told = []
    for message in messages:
        turn: dict[str, Any] = {"role": _role(message), "content": message.text}
        if message.reasoning_content is not None:
            turn["reasoning_content"] = message.reasoning_content
        if message.tool_calls:
            turn["tool_calls"] = [_call(call) for call in message.tool_calls]
        if message.tool_call_id is not None:
            turn["tool_call_id"] = message.tool_call_id
            if message.tool_call_id in names:
                turn["name"] = names[message.tool_call_id]
        told.append(turn)
    return told


def turns_in_words(
    messages: Sequence[ChatMessage], tools: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """The messages with tools, calls and results as texts, for a template that knows none of them."""
    told: list[dict[str, Any]] = []
    for message in messages:
        role, content = _role(message), message.text
        if message.tool_calls:
            content += calls_text([_call(call) for call in message.tool_calls])
        if role == "tool":
            role, content = "user", f"<tool_response>{content}</tool_response>"
            if told and told[-1].get("results"):
                told[-1]["content"] += "\n" + content
                continue
        turn = {"role": role, "content": content, "results": message.role == "tool"}
        if message.reasoning_content is not None:
            turn["reasoning_content"] = message.reasoning_content
        told.append(turn)
    if tools and told and told[0]["role"] == "system":
        told[0]["content"] += "\n\n" + system_text(tools)
    elif tools:
        told.insert(0, {"role": "system", "content": system_text(tools)})
    return [{name: value for name, value in turn.items() if name != "results"} for turn in told]


def arguments_of(call: ToolCall) -> Any:
    """The arguments of a call as a value; a text that is no JSON, as strictly as a body, stays one."""
    try:
        return parse_json(call.function.arguments.encode(), HttpLimits())
    except MalformedJson:
        return call.function.arguments


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}


def _role(message: ChatMessage) -> str:
    return "system" if message.role == "developer" else message.role


_STEPS = 1_000_000
# Of the prompt's limit: a template joins and copies what it writes several times.
_COPIES = 16
MOST_CHARACTERS = 1_000_000
_OURS = frozenset({"messages", "tools", "add_generation_prompt"})


class ChatTemplate:
    """A Jinja template as Hugging Face tokenizers carry it, run in a sandbox with a budget.

    Args:
        source: the template.
        special_tokens: names such as `bos_token` and their texts.

    Raises:
        ValueError: the template has a syntax error.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str] | None = None) -> None:
        self._environment = BoundedEnvironment()
        try:
            self._template = self._environment.from_string(source)
        except TemplateError as error:
            raise ValueError(f"the chat template is not valid: {error}") from error
        self._special_tokens = dict(special_tokens or {})
        self.source = source
        self.tool_format = format_of(source)

    def render(
        self,
        messages: Sequence[ChatMessage],
        field: str = "messages",
        most: int = MOST_CHARACTERS,
        tools: Sequence[Mapping[str, Any]] = (),
        variables: Mapping[str, Any] = MappingProxyType({}),
        *,
        opens_answer: bool = True,
    ) -> str:
        """The prompt: the conversation and, if it `opens_answer`, the opening of the next message.

        Args:
            field: what the request calls the conversation.
            most: characters that the prompt may have.
            tools: as OpenAI's chat API writes them.
            variables: further ones of the template.

        Raises:
            BadRequest: a variable is not the caller's to set; the template refuses this conversation, for
                instance its order of roles, or does too much on it.
            ContextLengthExceeded: the prompt is longer than `most`.
        """
        if taken := [name for name in variables if name in self._special_tokens or name in _OURS]:
            raise BadRequest(
                f"chat_template_kwargs: {taken[0]} is set by the service.", param="chat_template_kwargs"
            )
        taught = self.tool_format.taught
        pieces: list[str] = []
        written = 0
        try:
            with self._environment.spending(_STEPS + _COPIES * most):
                told = turns(messages) if taught else turns_in_words(messages, tools)
                given = {"messages": told, "add_generation_prompt": opens_answer, **self._special_tokens}
                if tools and taught:
                    given["tools"] = list(tools)
                for piece in self._template.generate(given, **variables):
                    written += len(piece)
                    if written > most:
                        raise ContextLengthExceeded(
                            f"The messages are longer than the {most} characters that the model's context "
                            "can hold.",
                            param=field,
                        )
                    pieces.append(piece)
        except ContextLengthExceeded:
            raise
        except TemplateTooLarge as error:
            raise BadRequest(
                f"The model's chat template cannot be used on these messages: {error}.", param=field
            ) from error
        except TemplateError as error:
            raise BadRequest(
                f"The model's chat template refuses these messages: {error}", param=field
            ) from error
        except Exception as error:  # a template is foreign code
            raise BadRequest("The model's chat template fails on these messages.", param=field) from error
        return "".join(pieces)
