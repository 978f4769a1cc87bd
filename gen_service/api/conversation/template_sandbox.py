"""A Jinja sandbox whose templates can neither reach out, nor run long, nor write much.

A template comes with a model folder and is foreign code. Steps, characters that are copied and time are
counted against a budget: each turn of a loop, each call, each text that is joined, each output.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from functools import wraps
from typing import Any, NoReturn

from jinja2 import Environment, TemplateError, nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

RENDER_SECONDS = 5.0
_LARGEST_NUMBER = 10**6  # widths, counts and factors
_LARGEST_INDENT = 64
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
    """What one rendering, or several together, may still do: steps, and seconds.

    Attributes:
        moment: what the templates take for now.
    """

    def __init__(self, steps: int) -> None:
        self._left = steps
        self._deadline = time.monotonic() + RENDER_SECONDS
        self.moment = datetime.now().astimezone()
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
            extensions=[loopcontrols, _Counted, _Generation],
            finalize=self._count_output,
        )
        self._budget: ContextVar[Budget] = ContextVar("budget")
        own = {"tojson": _to_json}
        self.filters = {
            name: self._bounded(name, own.get(name, self.filters[name])) for name in _FILTERS.split()
        }
        self.filters |= {"_turns": self._turns, "_joined": self._joined}
        self.globals = {name: self.globals[name] for name in ("dict", "namespace", "range")}
        self.globals |= {"raise_exception": _refuse, "strftime_now": self._strftime_now}

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

    def _strftime_now(self, pattern: str) -> str:
        return self._budget.get().moment.strftime(pattern)


class _Counted(Extension):
    """Has templates changed by `_Counting` when they are read."""

    def __init__(self, environment: Environment) -> None:
        super().__init__(environment)
        parse = environment._parse

        def counted(source: str, name: str | None, filename: str | None) -> nodes.Template:
            template = parse(source, name, filename)
            _Counting().visit(template)
            template.set_environment(environment)
            return template

        environment._parse = counted  # type: ignore[method-assign]


class _Generation(Extension):
    """Takes `{% generation %}`, which tells trainers what the model wrote, for its body."""

    tags = {"generation"}  # noqa: RUF012 - as the library declares it

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body, lineno=line)


class _Counting(NodeTransformer):
    """Has the turns of loops, and what `~` joins, counted."""

    def visit_For(self, loop: nodes.For) -> nodes.Node:  # noqa: N802 - the library's names
        # Of the body alone: what stands in the loop's `else` is written once.
        text = sum(len(data.data) for data in nodes.Output(loop.body).find_all(nodes.TemplateData))
        loop.iter = _filter(loop.iter, "_turns", [nodes.Const(text)])
        return self.generic_visit(loop)

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:  # noqa: N802
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), "_joined", [])


def _filter(value: nodes.Node, name: str, args: list[nodes.Expr]) -> nodes.Filter:
    return nodes.Filter(value, name, args, [], None, None, lineno=value.lineno)


def _size(value: Any) -> int:
    """Characters or items of a value; numbers have none."""
    return len(value) if isinstance(value, str | bytes | list | tuple | dict) else 0


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """With the keywords, in the order, of the filter that chat templates are written for."""
    repeated = [indent if isinstance(indent, int) else len(indent or ""), *map(len, separators or ())]
    if max(repeated) > _LARGEST_INDENT:
        raise TemplateTooLarge("it pads too far")
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)
