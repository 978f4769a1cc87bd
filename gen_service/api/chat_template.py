"""From a conversation to the text that the model continues, by the tokenizer's own template."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from jinja2 import TemplateError

from ttmark.gen_service.api.template_sandbox import BoundedEnvironment, TemplateTooLarge
from ttmark.gen_service.features.structured.tool_formats import (
    OURS,
    ToolFormat,
    as_text,
    in_words,
    show_tools,
    system_text,
)
from ttmark.shared.http.request_body import HttpLimits, parse_json
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded, MalformedJson
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.schemas.generation.tools import ToolCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from ttmark.gen_service.features.structured.learned_format import Learned, Render


def turns(
    messages: Sequence[ChatMessage], form: ToolFormat = OURS, *, parts: bool = False
) -> list[dict[str, Any]]:
    """The messages, for a template that knows tools: arguments are values, results name their function.

    Args:
        parts: leaves contents in parts where the caller wrote parts, but for results of tools.
    """
    names: dict[str, str] = {}
    told = []
    for message in messages:
        turn: dict[str, Any] = {"role": _role(message), "content": message.text, **_thoughts(message)}
        if parts and isinstance(message.content, list) and message.role != "tool":
            turn["content"] = [part.model_dump(include={"type", "text"}) for part in message.content]
        if message.tool_calls:
            turn["content"] = turn["content"] or form.content
            turn["tool_calls"] = [_call(call) for call in message.tool_calls]
            for call in turn["tool_calls"] if form.text_arguments else ():
                call["function"]["arguments"] = as_text(call["function"]["arguments"])
            names |= {call.id: call.function.name for call in message.tool_calls}
        if message.tool_call_id is not None:
            turn["tool_call_id"] = message.tool_call_id
            if message.tool_call_id in names:
                turn["name"] = names[message.tool_call_id]
        told.append(turn)
    return told


def arguments_of(call: ToolCall) -> Any:
    """The arguments of a call as a value: of none at all, as many models write it, an empty object.

    A text that is no JSON, as strictly as a body, stays one.
    """
    written = call.function.arguments.strip() or "{}"
    try:
        return parse_json(written.encode(), HttpLimits())
    except MalformedJson:
        return call.function.arguments


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}


def _thoughts(message: ChatMessage) -> dict[str, str]:
    """By all names that templates know."""
    told = message.thoughts
    return {} if told is None else dict.fromkeys(("reasoning_content", "thinking", "reasoning"), told)


def _role(message: ChatMessage) -> str:
    return "system" if message.role == "developer" else message.role


_LEARNING_STEPS = 20_000_000
_STEPS = 1_000_000
# Of the prompt's limit: a template joins and copies what it writes several times.
_COPIES = 16
MOST_CHARACTERS = 1_000_000
_PROBE = "zqtext"
_OURS = frozenset({"messages", "tools", "add_generation_prompt"})


class ChatTemplate:
    """A Jinja template as Hugging Face tokenizers carry it, run in a sandbox with a budget.

    Args:
        source: the template.
        special_tokens: names such as `bos_token` and their texts.
        tools: another one, for conversations with tools.

    Raises:
        ValueError: a template has a syntax error.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str] | None = None, tools: str = "") -> None:
        self._environment = BoundedEnvironment()
        try:
            self._template = self._environment.from_string(source)
        except TemplateError as error:
            raise ValueError(f"the chat template is not valid: {error}") from error
        self._special_tokens = dict(special_tokens or {})
        self.source = source
        self.with_tools: ChatTemplate = ChatTemplate(tools, special_tokens) if tools else self
        self._takes: tuple[bool, bool] | None = None

    @cached_property
    def learned(self) -> "Learned":
        """How the model calls tools and reasons, by its template."""
        # Imported here: only what serves a model has need of it.
        from ttmark.gen_service.features.structured.learned_format import learned_of

        return learned_of(ChatTemplate, self.source, tuple(self._special_tokens.items()))

    def learn(self, learn: "Callable[[Render], Learned]") -> "Learned":
        """What `learn` makes of the template, within one budget of steps and time."""
        with self._environment.spending(_LEARNING_STEPS):
            return learn(self.written)

    def written(
        self, told: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], opens_answer: bool
    ) -> str:
        """What the template makes of turns as they are; within the budget of whoever asks."""
        return self._template.render(self._given(told, tools, opens_answer))

    def _given(
        self, told: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]], opens_answer: bool
    ) -> dict[str, Any]:
        given = {"messages": told, "tools": tools or None, "documents": None}
        return given | {"add_generation_prompt": opens_answer, **self._special_tokens}

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
        if tools and self.with_tools is not self:
            return self.with_tools.render(messages, field, most, tools, variables, opens_answer=opens_answer)
        if taken := [name for name in variables if name in self._special_tokens or name in _OURS]:
            raise BadRequest(
                f"chat_template_kwargs: {taken[0]} is set by the service.", param="chat_template_kwargs"
            )
        of_tools = bool(tools) or any(each.tool_calls or each.role == "tool" for each in messages)
        form = (self.learned.tools if of_tools else None) or ToolFormat("", "", "")
        pieces: list[str] = []
        written = 0
        try:
            with self._environment.spending(_STEPS + _COPIES * most):
                takes_text, takes_parts = self._takes or self._look_at_content()
                told = turns(messages, form, parts=takes_parts and form.writes)
                if not form.writes:
                    told = in_words(told)
                if tools and not form.shows:
                    show_tools(told, system_text(form, tools), system=self.learned.takes_system)
                for turn in told:
                    if not takes_text and isinstance(turn["content"], str):
                        turn["content"] = [{"type": "text", "text": turn["content"]}]
                given = self._given(told, list(tools) if form.shows else (), opens_answer)
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
        except TemplateError as error:
            how = "cannot be used on" if isinstance(error, TemplateTooLarge) else "refuses"
            message = f"The model's chat template {how} these messages: {error}"
            raise BadRequest(message, param=field) from error
        except Exception as error:  # a template is foreign code
            raise BadRequest("The model's chat template fails on these messages.", param=field) from error
        return "".join(pieces)

    def _look_at_content(self) -> tuple[bool, bool]:
        """Whether the template shows a text, and parts, that a user wrote; what shows neither takes texts."""
        text = {"type": "text", "text": _PROBE}
        parts = self._shows([text, text])
        self._takes = self._shows(_PROBE) or not parts, parts
        return self._takes

    def _shows(self, content: str | list[dict[str, str]]) -> bool:
        turn = {"role": "user", "content": content}
        try:
            shown = self._template.render(messages=[turn], tools=None, **self._special_tokens)
        except Exception:  # a template is foreign code
            return False
        if isinstance(content, str):
            return _PROBE in shown
        # What writes the list itself, as Python or JSON does, has not read it.
        return shown.count(_PROBE) == 2 and not any(f"{mark}text{mark}: " in shown for mark in "'\"")
