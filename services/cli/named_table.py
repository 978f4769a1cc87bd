"""A table whose rows are named by paths: on a terminal their ends stay, elsewhere they are whole."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

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
