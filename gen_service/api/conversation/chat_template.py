"""From a conversation to the text that the model continues, by the tokenizer's own template."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeVar

from jinja2 import TemplateError

from ttmark.gen_service.api.conversation.template_sandbox import BoundedEnvironment, TemplateTooLarge
from ttmark.shared.features import modules_of
from ttmark.shared.http.request_body import HttpLimits, parse_json
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded, MalformedJson
from ttmark.shared.schemas.generation.chat import ChatMessage
from ttmark.shared.schemas.generation.tools import ToolCall

T = TypeVar("T")
Turns = list[dict[str, Any]]
Tools = Sequence[Mapping[str, Any]]
Render = Callable[[Sequence[Mapping[str, Any]], Tools, bool], str]
"""The text of turns and tools, with or without the opening of an answer."""


def turn_of(message: ChatMessage, *, parts: bool) -> dict[str, Any]:
    """The message for a template; with `parts` its content stays in parts where the caller wrote parts."""
    role = "system" if message.role == "developer" else message.role
    turn: dict[str, Any] = {"role": role, "content": message.text, **_thoughts(message)}
    if parts and isinstance(message.content, list):
        turn["content"] = [part.model_dump(include={"type", "text"}) for part in message.content]
    return turn


def arguments_of(call: ToolCall) -> Any:
    """The arguments of a call as a value: of none at all, as many models write it, an empty object.

    A text that is no JSON, as strictly as a body, stays one.
    """
    written = call.function.arguments.strip() or "{}"
    try:
        return parse_json(written.encode(), HttpLimits())
    except MalformedJson:
        return call.function.arguments


def _thoughts(message: ChatMessage) -> dict[str, str]:
    """By all names that templates know."""
    told = message.thoughts
    return {} if told is None else dict.fromkeys(("reasoning_content", "thinking", "reasoning"), told)


Tell = Callable[[Sequence[ChatMessage], Tools, bool], tuple[Turns, Tools]]
"""The turns of a conversation, in parts if so, and the tools that the template shows."""


def _without_tools(messages: Sequence[ChatMessage], _: Tools, parts: bool) -> tuple[Turns, Tools]:
    return [turn_of(message, parts=parts) for message in messages], ()


def _with_tools(template: "ChatTemplate") -> Tell:
    """How conversations with tools are told, by the feature that knows it.

    Raises:
        BadRequest: there is none.
    """
    for module in modules_of("tool_turns", "ttmark.gen_service.features"):
        tell: Tell = module.teller(template)
        return tell
    raise BadRequest("tools: not supported by this service.", param="tools")


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
        self.special_tokens = dict(special_tokens or {})
        self.source = source
        self.with_tools: ChatTemplate = ChatTemplate(tools, special_tokens) if tools else self
        self._takes: tuple[bool, bool] | None = None

    def learn(self, learn: Callable[[Render], T]) -> T:
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
        return given | {"add_generation_prompt": opens_answer, **self.special_tokens}

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
        if taken := [name for name in variables if name in self.special_tokens or name in _OURS]:
            raise BadRequest(
                f"chat_template_kwargs: {taken[0]} is set by the service.", param="chat_template_kwargs"
            )
        of_tools = bool(tools) or any(each.tool_calls or each.role == "tool" for each in messages)
        tell = _with_tools(self) if of_tools else _without_tools
        pieces: list[str] = []
        written = 0
        try:
            with self._environment.spending(_STEPS + _COPIES * most):
                takes_text, takes_parts = self._takes or self._look_at_content()
                told, shown = tell(messages, tools, takes_parts)
                for turn in told:
                    if not takes_text and isinstance(turn["content"], str):
                        turn["content"] = [{"type": "text", "text": turn["content"]}]
                given = self._given(told, shown, opens_answer)
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
            shown = self._template.render(messages=[turn], tools=None, **self.special_tokens)
        except Exception:  # a template is foreign code
            return False
        if isinstance(content, str):
            return _PROBE in shown
        # What writes the list itself, as Python or JSON does, has not read it.
        return shown.count(_PROBE) == 2 and not any(f"{mark}text{mark}: " in shown for mark in "'\"")
