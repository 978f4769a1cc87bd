"""What an experiment works with: an open run, the model that makes its texts, and a console."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar, Protocol, cast

from rich.console import Console

from ttmark.evaluation.command_line import command_line
from ttmark.evaluation.engine_source import EngineSource
from ttmark.evaluation.entropy import EntropyReport, entropy_note, measure_entropy
from ttmark.evaluation.experiment_cells import SETTINGS, Cell, SamplingSetting, Setting
from ttmark.evaluation.json_files import read_kept, write_kept
from ttmark.evaluation.report.result import Result, Table
from ttmark.evaluation.run_folder import Run
from ttmark.evaluation.run_manifest import machine, versions
from ttmark.evaluation.simulated import SimulatedSource

ModelSource = EngineSource | SimulatedSource
"""A model that makes texts, and what experiments ask about it besides."""
ENTROPY_TEXTS = 30


@dataclass(frozen=True, slots=True)
class Lab:
    """An open run.

    Attributes:
        label: keeps the results of some options apart from those of others.
        sampling: in place of what settings have, by the fields of `SamplingSetting`.
    """

    run: Run
    source: ModelSource
    console: Console
    label: str | None = None
    sampling: Mapping[str, float] = field(default_factory=dict)

    def setting(self, name: Setting) -> SamplingSetting:
        """The named setting with what was given in its place."""
        return replace(SETTINGS[name], **cast(Any, self.sampling))

    def entropy(self, setting: SamplingSetting, tokens: int, texts: int) -> EntropyReport:
        """Along up to `texts` unwatermarked texts of `tokens` tokens."""
        count = min(ENTROPY_TEXTS, texts)
        path = self.run.folder / "entropy" / f"{setting.slug}-n{tokens}-{count}.json"
        report = read_kept(path, EntropyReport)
        if report is None:
            plain = self.run.texts(Cell(None, 1, setting, tokens), count)
            pairs = [(self.prompt(text.index), text.token_ids) for text in plain]
            report = measure_entropy(self.source.language_model, setting, pairs)
            write_kept(path, report)
        return report

    def entropy_note(self, setting: SamplingSetting, tokens: int, texts: int) -> str:
        """The line about entropy that goes with every table."""
        return entropy_note(self.entropy(setting, tokens, texts))

    def prompt(self, index: int) -> tuple[int, ...]:
        """The prompt of text `index` of every cell."""
        prompts = self.source.prompts
        return prompts[index % len(prompts)]

    def finish(self, experiment: str, tables: Sequence[Table], rows: Sequence[Any]) -> None:
        """Shows the tables and writes everything, the rows as data, to the run's folder."""
        for table in tables:
            self.console.print(table.rich())
        name, data = "-".join(filter(None, (experiment, self.label))), tuple(map(asdict, rows))
        result = Result(name, command_line(without="--out"), tuple(tables), data, machine(), versions())
        result.save(self.run.folder)
        self.console.print(f"written to {self.run.folder / result.experiment}.json and .md")


class Experiment(Protocol):
    """A dataclass whose fields are the options of its command, and its docstring the help.

    Attributes:
        name: of the command and of the result's files.
    """

    name: ClassVar[str]

    def measure(self, lab: Lab) -> None:
        """Makes the texts that are missing and writes tables and rows to the run's folder."""
        ...
