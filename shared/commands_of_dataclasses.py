"""Command lines made from dataclasses: a field is an option, the docstring is the help."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin


def command_of(call: Callable[[Any], None], kind: type) -> Callable[..., None]:
    """A command with the options of `kind`; `call` takes one instance of it."""
    fields = inspect.signature(kind).parameters.values()

    def command(**options: Any) -> None:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
        call(kind(**given))

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=_for_typer(parameter.annotation))
        for parameter in fields
    ]
    command.__doc__ = kind.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return command


def _for_typer(annotation: Any) -> Any:
    """Typer knows values that may be repeated as lists, dataclasses have tuples as defaults."""
    if get_origin(annotation) is not Annotated:
        return annotation
    kind, *rest = get_args(annotation)
    if get_origin(kind) is tuple:
        kind = list[get_args(kind)[0]]  # type: ignore[misc]
    return Annotated[kind, *rest]
