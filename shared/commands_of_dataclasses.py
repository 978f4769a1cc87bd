"""Command lines made from dataclasses: a field is an option, the docstring is the help."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin


def command_of(call: Callable[..., None], *kinds: type) -> Callable[..., None]:
    """A command with the options of all `kinds`; `call` takes one instance of each."""
    fields = [inspect.signature(kind).parameters for kind in kinds]

    def command(**options: Any) -> None:
        given = {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
        of_kind = [{name: given[name] for name in names} for names in fields]
        call(*(kind(**chosen) for kind, chosen in zip(kinds, of_kind, strict=True)))

    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=_for_typer(parameter.annotation))
        for names in fields
        for parameter in names.values()
    ]
    command.__doc__ = kinds[0].__doc__
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
