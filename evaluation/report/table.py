"""Tables of results, as data; Markdown and the terminal show the same cells."""

from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table as RichTable


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of finished text.

    Attributes:
        rows: as many cells each as there are columns.
        notes: what a reader has to know to judge the figures.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if any(len(row) != len(self.columns) for row in self.rows):
            raise ValueError(f"{self.title}: a row has not {len(self.columns)} cells")

    def markdown(self) -> str:
        """The table in GitHub's Markdown, notes below it."""
        lines = [f"**{self.title}**", "", _line(self.columns), _line(("---",) * len(self.columns))]
        lines += [_line(row) for row in self.rows]
        if self.notes:
            lines += ["", *(f"- {note}" for note in self.notes)]
        return "\n".join(lines) + "\n"

    def rich(self) -> RichTable:
        """The table for a terminal."""
        caption = escape("\n".join(self.notes)) or None
        table = RichTable(*map(escape, self.columns), title=escape(self.title), caption=caption)
        for row in self.rows:
            table.add_row(*map(escape, row))
        return table


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def power_of_ten(log10: float) -> str:
    """10**log10 with two digits, also where a float would underflow."""
    exponent = int(log10 // 1)
    mantissa = f"{10 ** (log10 - exponent):.1f}"
    if mantissa == "10.0":
        mantissa, exponent = "1.0", exponent + 1
    return mantissa if exponent == 0 else f"{mantissa}e{exponent}"
