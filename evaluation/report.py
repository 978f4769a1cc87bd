"""The outcome of one experiment: tables and figures as JSON and Markdown."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import orjson
from pydantic import TypeAdapter
from rich.markup import escape
from rich.table import Table as RichTable

from ttmark.evaluation.run_manifest import in_words
from ttmark.shared.languages.words import counted
from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of finished text.

    Attributes:
        rows: as many cells each as there are columns.
        notes: what a reader has to know to judge the figures.
        aside: pages count the table and do not print it; a terminal and the JSON file have it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    aside: bool = False

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"{self.title}: a row has not {len(self.columns)} cells")

    def markdown(self) -> str:
        lines = [f"**{self.title}**", "", _line(self.columns), _line(("---",) * len(self.columns))]
        lines += [_line(row) for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def rich(self) -> RichTable:
        caption = escape("\n".join(self.notes)) or None
        table = RichTable(*map(escape, self.columns), title=escape(self.title), caption=caption)
        table.columns[0].no_wrap = True  # it says what the row is
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table


def rate_name(fpr: float) -> str:
    """A false positive rate, as 1e-5."""
    return f"{fpr:.0e}".replace("e-0", "e-")


Row = TypeVar("Row")
Key = TypeVar("Key")


def table_by(
    title: str, rows: Iterable[Row], columns: Mapping[str, Callable[[Row], object]], notes: Sequence[str] = ()
) -> Table:
    """A table of rows by columns, each with what it shows of a row; None is an empty cell."""
    cells = tuple(
        tuple("" if (value := show(row)) is None else str(value) for show in columns.values()) for row in rows
    )
    return Table(title, tuple(columns), cells, tuple(notes))


def groups(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """Rows by a key, keys and rows in the order of the rows."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@dataclass(frozen=True, slots=True)
class Result:
    """Tables, and the figures of every cell behind them.

    Attributes:
        command: what makes this result again.
        data: plain values.
        machine: processor, cores and memory it was made on; None in files from before this was kept.
        versions: of Python and the packages that figures depend on; None likewise.
    """

    experiment: str
    command: str
    tables: tuple[Table, ...]
    data: tuple[dict[str, Any], ...]
    machine: dict[str, Any] | None = None
    versions: dict[str, str] | None = None

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{self.experiment}.json", self.json(), mode=AS_UMASK_SAYS)
        (folder / f"{self.experiment}.md").write_text(self.markdown())

    def json(self) -> bytes:
        options = orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_APPEND_NEWLINE
        return orjson.dumps(asdict(self), option=options)

    def markdown(self) -> str:
        """Tables, the command and the machine; versions stand in the JSON file alone."""
        return "\n".join(self.parts())

    def parts(self) -> list[str]:
        """What `markdown` joins: tables, then the command and the machine."""
        parts = [table.markdown() for table in self.tables if not table.aside]
        if aside := sum(table.aside for table in self.tables):
            where = f"[{self.experiment}.json]({self.experiment}.json)"
            parts.append(f"In {where} alone: {counted(aside, 'table')}.\n")
        made = f"Made by `{self.command}`"
        if self.machine is not None:
            made += f"\non {in_words(self.machine)}"
        return [*parts, f"{made}.\n"]

    @classmethod
    def load(cls, path: Path) -> "Result":
        return TypeAdapter(cls).validate_json(path.read_bytes())
