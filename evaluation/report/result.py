"""The outcome of one experiment: JSON for programs, from which Markdown and plots are made."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

from evaluation.report.figure import Figure
from evaluation.report.plots import draw
from evaluation.report.table import Table


@dataclass(frozen=True, slots=True)
class Result:
    """Tables and figures, and the figures of every cell behind them.

    Attributes:
        command: what makes this result again.
        data: plain values.
    """

    experiment: str
    command: str
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    data: tuple[dict[str, Any], ...]

    def labelled(self, label: str) -> "Result":
        """The same under `<experiment>-<label>`, plots included."""
        figures = tuple(replace(figure, name=f"{figure.name}-{label}") for figure in self.figures)
        return replace(self, experiment=f"{self.experiment}-{label}", figures=figures)

    def save(self, folder: Path) -> None:
        """Writes `<experiment>.json`, `.md` and the plots."""
        folder.mkdir(parents=True, exist_ok=True)
        document = orjson.dumps(asdict(self), option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
        (folder / f"{self.experiment}.json").write_bytes(document + b"\n")
        (folder / f"{self.experiment}.md").write_text(self.markdown())
        for figure in self.figures:
            draw(figure, folder)

    def markdown(self) -> str:
        """Tables, plots and the command."""
        parts = [table.markdown() for table in self.tables]
        parts += [f"![{figure.title}]({figure.name}.png)\n" for figure in self.figures]
        return "\n".join([*parts, f"Made by `{self.command}`.\n"])

    @classmethod
    def load(cls, path: Path) -> "Result":
        """Reads a result that `save` wrote."""
        return TypeAdapter(cls).validate_json(path.read_bytes())
