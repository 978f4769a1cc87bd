"""What the command lines of this package share: groups of commands, and expected errors as one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import typer


def new_app(about: str) -> typer.Typer:
    """A group of commands."""
    return typer.Typer(help=about, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@contextmanager
def one_clear_line(expected: tuple[type[Exception], ...] = (ValueError, OSError)) -> Iterator[None]:
    """Ends the command with the message of an expected error."""
    try:
        yield
    except expected as error:
        typer.echo(f"ttmark: {error}", err=True)
        raise typer.Exit(1) from error
