"""From a conversation to the text that the model continues, by the tokenizer's own template.

Also here, a Jinja sandbox whose templates can neither reach out, nor run long, nor write much.

A template comes with a model folder and is foreign code. Steps, characters that are copied and time are
counted against a budget: each turn of a loop, each call, each text that is joined, each output.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import wraps
from types import MappingProxyType
from typing import Any, NoReturn

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ttmark.gen_service.api.tool_formats import calls_text, format_of, result_text, system_text
from ttmark.shared.http.service_errors import BadRequest, ContextLengthExceeded
from ttmark.shared.schemas.chat import ChatMessage
from ttmark.shared.schemas.tools import ToolCall

RENDER_SECONDS = 5.0
_LARGEST_NUMBER = 10**6  # widths, counts and factors
_WIDE = re.compile(r"\d{5}")
_CLOCK_EVERY = 1_000
_NO_METHODS = frozenset({"translate", "maketrans", "expandtabs", "format_map"})
# Those that chat templates use. What is left out draws lines, pads or makes up text.
_FILTERS = (
    "abs batch capitalize count d default dictsort e escape first float forceescape groupby indent int "
    "items join last length list lower map max min reject rejectattr replace reverse round safe select "
    "selectattr slice sort string sum title tojson trim unique upper wordcount"
)


class TemplateTooLarge(TemplateError):
    """The template does or writes more than it may."""


class Budget:
    """What one rendering may still do: steps, and seconds."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self._deadline = time.monotonic() + RENDER_SECONDS
        self._unseen = 0

    def charge(self, steps: int) -> None:
        """Counts steps, or characters that are copied.

        Raises:
            TemplateTooLarge: the budget is used up.
        """
        self._left -= 1 + steps
        self._unseen += 1
        if self._left < 0:
            raise TemplateTooLarge("it does too much")
        if self._unseen >= _CLOCK_EVERY:
            self._unseen = 0
            if time.monotonic() > self._deadline:
                raise TemplateTooLarge("it takes too long")


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """The sandbox with a budget; it renders within `spending` only."""

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        # Chat templates are written for these two settings.
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=[loopcontrols, _Counted],
            finalize=self._count_output,
        )
        self._budget: ContextVar[Budget] = ContextVar("budget")
        own = {"tojson": _to_json}
        self.filters = {
            name: self._bounded(name, own.get(name, self.filters[name])) for name in _FILTERS.split()
        }
        self.filters |= {"_turns": self._turns, "_joined": self._joined}
        self.globals = {name: self.globals[name] for name in ("dict", "namespace", "range")}
        self.globals |= {"raise_exception": _refuse, "strftime_now": _strftime_now}

    @contextmanager
    def spending(self, steps: int) -> Iterator[None]:
        """Renders in this context may do so many steps together."""
        token = self._budget.set(Budget(steps))
        try:
            yield
        finally:
            self._budget.reset(token)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in _NO_METHODS and super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        self._check_numbers((left, right))
        match operator:
            case "*":
                self._charge(_size(left) * right if isinstance(right, int) else 0)
                self._charge(_size(right) * left if isinstance(left, int) else 0)
            case "**":
                self._check_numbers((left, right), largest=100)
            case "%":
                self._check_widths(left)
            case _:
                self._charge(_size(left) + _size(right))
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        # The names are the library's: a template may call something with an argument `self`.
        owner, name = getattr(__obj, "__self__", None), getattr(__obj, "__name__", "")
        __self._check_call(owner, name, (*args, *kwargs.values()))
        result = super().call(__context, __obj, *args, **kwargs)
        __self._charge(_size(result))
        return result

    def _bounded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A filter that is charged for what it takes and gives."""

        @wraps(function)  # with the marks that say what the library passes to it
        def bounded(*args: Any, **kwargs: Any) -> Any:
            given = (*args, *kwargs.values())
            values = given[1:] if hasattr(function, "jinja_pass_arg") else given
            self._check_call(values[0] if values else None, name, values[1:])
            self._charge(sum(map(_size, values)))
            result = function(*args, **kwargs)
            self._charge(_size(result))
            return result

        return bounded

    def _check_call(self, owner: Any, name: str, args: tuple[Any, ...]) -> None:
        """Refuses a call whose result would be large, before it is made."""
        self._check_numbers(args)
        self._charge(sum(map(_size, args)))
        if isinstance(owner, str):
            if name in ("format", "center", "ljust", "rjust", "zfill"):
                self._check_widths(owner)
            if name == "replace" and len(args) > 1 and isinstance(args[0], str) and isinstance(args[1], str):
                self._charge(owner.count(args[0]) * len(args[1]))
            if name == "indent":
                widths = [arg for arg in args if isinstance(arg, int | str)]
                lines = owner.count("\n") + 1
                self._charge(sum(lines * (_size(each) or int(each or 0)) for each in widths))
            if name == "join" and args and isinstance(args[0], Iterable):
                self._charge_joined(args[0], owner)
        elif name == "join" and isinstance(owner, list | tuple):
            self._charge_joined(owner, args[0] if args and isinstance(args[0], str) else "")

    def _charge_joined(self, parts: Iterable[Any], between: str) -> None:
        if isinstance(parts, Sized):
            self._charge(sum(_size(part) + len(between) for part in parts))

    def _check_numbers(self, values: Iterable[Any], largest: int = _LARGEST_NUMBER) -> None:
        for value in values:
            if isinstance(value, int) and abs(value) > largest:
                raise TemplateTooLarge("it counts too far")
            if isinstance(value, tuple):
                self._check_numbers(value, largest)

    def _check_widths(self, pattern: Any) -> None:
        if isinstance(pattern, str) and _WIDE.search(pattern):
            raise TemplateTooLarge("it pads too far")

    def _charge(self, steps: int) -> None:
        self._budget.get().charge(max(0, steps))

    def _count_output(self, value: Any) -> Any:
        # What stands in the template itself is finished when it is read, and costs nothing then.
        budget = self._budget.get(None)
        if budget is not None:
            budget.charge(_size(value))
        return value

    def _turns(self, values: Any, text: int) -> Any:
        """What a loop goes through; each turn may write `text` characters of the template's own."""
        if isinstance(values, Sized):
            self._charge(len(values) * (1 + text))
            return values
        return self._counted(values, text)

    def _counted(self, values: Iterable[Any], text: int) -> Iterator[Any]:
        for value in values:
            self._charge(text)
            yield value

    def _joined(self, parts: list[Any]) -> str:
        self._charge(sum(map(_size, parts)))
        return "".join(map(str, parts))


class _Counted(Extension):
    """Has the turns of loops, and what `~` joins, counted."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        parse = environment._parse

        def counted(source: str, name: str | None, filename: str | None) -> nodes.Template:
            template = parse(source, name, filename)
            for loop in template.find_all(nodes.For):
                text = sum(len(data.data) for part in loop.body for data in _own_text(part))
                loop.iter = _filter(loop.iter, "_turns", [nodes.Const(text)])
            _replace_concats(template)
            template.set_environment(environment)
            return template

        environment._parse = counted  # type: ignore[method-assign]


def _own_text(part: nodes.Node) -> Iterable[nodes.TemplateData]:
    return [part] if isinstance(part, nodes.TemplateData) else part.find_all(nodes.TemplateData)


def _replace_concats(node: nodes.Node) -> None:
    for name, value in node.iter_fields():
        if isinstance(value, list):
            setattr(node, name, [_without_concat(item) for item in value])
        elif isinstance(value, nodes.Node):
            setattr(node, name, _without_concat(value))


def _without_concat(node: Any) -> Any:
    if not isinstance(node, nodes.Node):
        return node
    _replace_concats(node)
    return (
        _filter(nodes.List(node.nodes, lineno=node.lineno), "_joined", [])
        if isinstance(node, nodes.Concat)
        else node
    )


def _filter(value: nodes.Node, name: str, args: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(value, name, args, [], None, None, lineno=value.lineno)


def _size(value: Any) -> int:
    """Characters or items of a value; numbers have none."""
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 0


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().astimezone().strftime(pattern)


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
            role, content = "user", result_text(content)
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
    """The arguments of a call as a value; a text that is no JSON stays one."""
    try:
        return json.loads(call.function.arguments)
    except ValueError:
        return call.function.arguments


def _call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.function.name, "arguments": arguments_of(call)}
    return {"id": call.id, "type": "function", "function": function}


def _role(message: ChatMessage) -> str:
    return "system" if message.role == "developer" else message.role


_STEPS = 1_000_000
# Of the prompt's limit: a template joins and copies what it writes several times.
_COPIES = 16
_MOST_CHARACTERS = 1_000_000
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
        most: int = _MOST_CHARACTERS,
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
        try:
            with self._environment.spending(_STEPS + _COPIES * most):
                return self._written(
                    messages, field, most, tools, {**variables, "add_generation_prompt": opens_answer}
                )
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

    def _written(
        self,
        messages: Sequence[ChatMessage],
        field: str,
        most: int,
        tools: Sequence[Mapping[str, Any]],
        variables: Mapping[str, Any],
    ) -> str:
        pieces: list[str] = []
        written = 0
        taught = self.tool_format.taught
        told = turns(messages) if taught else turns_in_words(messages, tools)
        shown = {"tools": list(tools)} if tools and taught else {}
        for piece in self._template.generate(messages=told, **shown, **self._special_tokens, **variables):
            written += len(piece)
            if written > most:
                raise ContextLengthExceeded(
                    f"The messages are longer than the {most} characters that the model's context can hold.",
                    param=field,
                )
            pieces.append(piece)
        return "".join(pieces)
