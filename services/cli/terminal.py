"""The terminal: asks before what cannot be taken back, and shows tables whose rows are named by paths."""

import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

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


_LEAST_ROOM = 12


def print_named(
    title: str, names: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """One line for each name, whose column has the given title, with its row."""
    console, needed = Console(), Console(width=1_000_000)
    if console.is_terminal:
        others = needed.measure(_table(title, [""] * len(rows), columns, rows)).maximum - cell_len(title)
        names = [_end_of(name, max(console.width - others, _LEAST_ROOM)) for name in names]
        console.print(_table(title, names, columns, rows))
    else:
        table = _table(title, names, columns, rows)
        Console(width=max(console.width, needed.measure(table).maximum)).print(table)


def _table(title: str, names: Sequence[str], columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table()
    table.add_column(title, no_wrap=True)
    for column in columns:
        table.add_column(column)
    for name, row in zip(names, rows, strict=True):
        table.add_row(*map(Text, (name, *row)))  # brackets in a name are no markup
    return table


def _end_of(name: str, room: int) -> str:
    """As much of the end as `room` character cells hold, after a sign that something is missing."""
    if cell_len(name) <= room:
        return name
    while cell_len(name) >= room:
        name = name[1:]
    return f"…{name}"
