"""What an experiment works with: an open run, the model that makes its texts, and a console."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, cast

from rich.console import Console

from ttmark.evaluation.calibration import calibrate
from ttmark.evaluation.command_line import command_words
from ttmark.evaluation.engine_source import EngineSource
from ttmark.evaluation.entropy import EntropyReport, entropy_note, measure_entropy
from ttmark.evaluation.experiment_cells import SETTINGS, Cell, SamplingSetting, Setting
from ttmark.evaluation.json_files import read_kept, write_kept
from ttmark.evaluation.report.plot_data import Figure
from ttmark.evaluation.report.result import Result, Table
from ttmark.evaluation.run_folder import Run
from ttmark.evaluation.simulated import SimulatedSource
from ttmark.evaluation.text_files import read_human_texts

ModelSource = EngineSource | SimulatedSource
"""A model that makes texts, and what experiments ask about it besides."""
ENTROPY_TEXTS = 30
CALIBRATION_TEXTS = 80


@dataclass(frozen=True, slots=True)
class Lab:
    """An open run.

    Attributes:
        label: keeps the results of some options apart from those of others.
        options: of every command of the run, a dataclass; None: results name those of the experiment alone.
        command: what makes the result again that is being measured.
        sampling: in place of what settings have, by the fields of `SamplingSetting`.
    """

    run: Run
    source: ModelSource
    console: Console
    label: str | None = None
    options: Any = None
    command: str = ""
    sampling: Mapping[str, float] = field(default_factory=dict)

    def measure(self, experiment: "Experiment") -> None:
        """Measures an experiment; its result says by which command."""
        experiment.measure(replace(self, command=self.command_of(experiment)))

    def command_of(self, experiment: "Experiment") -> str:
        """What makes the result of an experiment in this run."""
        shared = (replace(self.options, label=self.label),) if self.options else ()
        return command_words(experiment.name, experiment, *shared)

    def labelled(self, label: str | None) -> "Lab":
        """The same run; results get a further label."""
        return replace(self, label="-".join(filter(None, (self.label, label))) or None)

    def measured(self, experiment: "Experiment") -> Path | None:
        """The result of the very command that an experiment stands for; None where there is none."""
        path = self.run.folder / f"{'-'.join(filter(None, (experiment.name, self.label)))}.json"
        made = path.is_file() and Result.load(path).command == self.command_of(experiment)
        return path if made else None

    def setting(self, name: Setting, texts: int = CALIBRATION_TEXTS) -> SamplingSetting:
        """The named setting with what was given in its place.

        The temperature of `iso` is found once per run, unless it is given.
        """
        return replace(self._named_setting(name, texts), **cast(Any, self.sampling))

    def _named_setting(self, name: Setting, texts: int) -> SamplingSetting:
        if name in SETTINGS:
            return SETTINGS[name]
        if "temperature" in self.sampling:
            return SETTINGS[Setting.DEFAULT]
        path = self.run.folder / f"calibration-{name}.json"
        setting = read_kept(path, SamplingSetting)
        if setting is None:
            setting = calibrate(self.run, texts)
            write_kept(path, setting)
        return setting

    def entropy(self, setting: SamplingSetting, tokens: int, texts: int) -> EntropyReport:
        """Along up to `texts` unwatermarked texts of `tokens` tokens, with the bounds of pairs."""
        count = min(ENTROPY_TEXTS, texts)
        path = self.run.folder / "entropy" / f"{setting.slug}-n{tokens}-{count}-r2.json"
        report = read_kept(path, EntropyReport)
        if report is None:
            plain = self.run.texts(Cell(None, 1, setting, tokens), count)
            pairs = [(self.prompt(text.index), text.token_ids) for text in plain]
            report = measure_entropy(self.source.language_model, setting, pairs, self.run.seed)
            write_kept(path, report)
        return report

    def entropy_note(self, setting: SamplingSetting, tokens: int, texts: int) -> str:
        """The line about entropy that goes with every table."""
        return entropy_note(self.entropy(setting, tokens, texts))

    def prompt(self, index: int) -> tuple[int, ...]:
        """The prompt of text `index` of every cell."""
        prompts = self.source.prompts
        return prompts[index % len(prompts)]

    def prompt_rows(self, index: int) -> int:
        """Length of the prompt of a text."""
        return len(self.prompt(index))

    def human_texts(self, path: Path | None) -> list[str]:
        """Documents by people: those of the file, or those that go with the model."""
        return read_human_texts(path) if path else self.source.human_texts()

    def finish(
        self, experiment: str, tables: Sequence[Table], rows: Sequence[Any], figures: Sequence[Figure] = ()
    ) -> None:
        """Shows the tables and writes everything, the rows as data, to the run's folder."""
        for table in tables:
            self.console.print(table.rich())
        data = tuple(asdict(row) for row in rows)
        result = Result(experiment, self.command, tuple(tables), tuple(figures), data).made_here()
        result = result.labelled(self.label)
        result.save(self.run.folder)
        self.console.print(f"written to {self.run.folder / result.experiment}.json and .md")


class Experiment(Protocol):
    """A dataclass whose fields are the options of its command.

    Its docstring is the help of the command, and the first line of its section in the document of a run.

    Attributes:
        name: of the command and of the result's files.
        title: heading of the section.
    """

    name: ClassVar[str]
    title: ClassVar[str]

    def measure(self, lab: Lab) -> None:
        """Makes the texts that are missing and writes tables, plots and rows to the run's folder."""
        ...
