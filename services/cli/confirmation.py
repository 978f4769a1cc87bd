"""Asks before what cannot be taken back; a program has to say so beforehand."""

import sys
from typing import Annotated

import typer

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; needed where nobody can answer.")]


def confirm(consequence: str, *, yes: bool) -> None:
    """Returns when somebody at the terminal agrees, or `yes` says so.

    Raises:
        typer.BadParameter: standard input is no terminal.
        typer.Abort: the answer is no.
    """
    if yes:
        return
    if not is_terminal():
        raise typer.BadParameter(f"{consequence} Say --yes where nobody can be asked.", param_hint="--yes")
    typer.confirm(f"{consequence} Go on?", abort=True, err=True)


def is_terminal() -> bool:
    """Whether somebody at standard input can answer."""
    return sys.stdin.isatty()
