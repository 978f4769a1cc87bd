"""The terminal: asks before what cannot be taken back, shows tables, and how far a run is."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from ttmark.shared.languages.words import counted

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


def print_table(rows: Sequence[Mapping[str, str]], *, empty: str = "", named: bool = False) -> None:
    """Rows by column, as wide as they need to be: a cell that is cut short helps nobody.

    Args:
        empty: the line in place of no rows.
        named: the first column names rows by paths. The table has a frame and fits a terminal, where long
            names lose their beginnings.
    """
    if not rows:
        typer.echo(empty)
        return
    console, needed = Console(soft_wrap=not named), Console(width=1_000_000)
    if named and console.is_terminal:
        first, *_ = rows[0]
        others = needed.measure(_table([{**row, first: ""} for row in rows], named)).maximum - cell_len(first)
        room = max(console.width - others, _LEAST_ROOM)
        table = _table([{**row, first: _end_of(row[first], room)} for row in rows], named)
    else:
        table = _table(rows, named)
        console.width = max(console.width, needed.measure(table).maximum)
    console.print(table)


def _table(rows: Sequence[Mapping[str, str]], named: bool) -> Table:
    frame = box.HEAVY_HEAD if named else None
    table = Table(*rows[0], box=frame, pad_edge=named, header_style="table.header" if named else "bold")
    table.columns[0].no_wrap = named
    for row in rows:
        table.add_row(*map(Text, row.values()))  # brackets in a name are no markup
    return table


def _end_of(name: str, room: int) -> str:
    """As much of the end as `room` character cells hold, after a sign that something is missing."""
    if cell_len(name) <= room:
        return name
    while cell_len(name) >= room:
        name = name[1:]
    return f"…{name}"


@dataclass
class ProgressLine:
    """A bar with rate and remaining time on a terminal; elsewhere a line each ten seconds."""

    what: str = "row"
    started: float = field(default_factory=time.monotonic)
    _spoke: float = 0.0

    def __enter__(self) -> "ProgressLine":
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
        console = Console(stderr=True)
        self._bar = Progress(*columns, console=console, disable=not sys.stderr.isatty(), transient=True)
        self._task = self._bar.add_task("", total=1.0)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @property
    def seconds(self) -> float:
        """Since the run began."""
        return time.monotonic() - self.started

    def update(self, done: int, share: float, new: int | None = None) -> None:
        """Shows how many are done, which share that is, and the rate of those that are new: else of all."""
        said = f"{counted(done, self.what)}, {(done if new is None else new) / self.seconds:.1f}/s"
        self._bar.update(self._task, completed=share, description=said)
        if self._bar.disable and self.seconds - self._spoke >= 10:
            self._spoke = self.seconds
            left = self.seconds * (1 - share) / max(share, 1e-9)
            typer.echo(f"{said}, {share:.0%}, {left:.0f} s left", err=True)
