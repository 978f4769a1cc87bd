"""What a command works with: an open run, its model, a console, and errors as one line."""

import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evaluation.calibration import calibrate
from evaluation.cli.options import model_path, prompts_path
from evaluation.edits.endpoint import EndpointError
from evaluation.entropy import EntropyReport
from evaluation.kept import read_kept, write_kept
from evaluation.manifest import ManifestMismatch, describe
from evaluation.model_figures import ModelFigures, entropy_note
from evaluation.prompts import MAX_TOKENS
from evaluation.report.figure import Figure
from evaluation.report.result import Result
from evaluation.report.table import Table
from evaluation.run import Run
from evaluation.settings import CALIBRATED, SETTINGS, SamplingSetting, Setting
from evaluation.sources import EngineSource
from gen_service.engine import EngineError, EngineSettings
from shared.tokenization import TokenizerMissing

PLAIN_WIDTH = 160
ENTROPY_TEXTS = 30
CALIBRATION_TEXTS = 80
EXPECTED = (ValueError, OSError, ManifestMismatch, EngineError, EndpointError, TokenizerMissing)


@dataclass(frozen=True, slots=True)
class Lab:
    """An open run.

    Attributes:
        label: keeps the results of some options apart from those of others.
    """

    run: Run
    source: EngineSource
    figures: ModelFigures
    console: Console
    label: str | None = None

    def setting(self, name: Setting, texts: int = CALIBRATION_TEXTS) -> SamplingSetting:
        """The named setting; the temperature of `iso` and `iso-fresh` is found once per run."""
        if name in SETTINGS:
            return SETTINGS[name]
        path = self.run.folder / f"calibration-{name}.json"
        setting = read_kept(path, SamplingSetting)
        if setting is None:
            setting = calibrate(self.run, texts, CALIBRATED[name])
            write_kept(path, setting)
        return setting

    def entropy(
        self, setting: SamplingSetting, tokens: int, texts: int, block_size: int = 2
    ) -> EntropyReport:
        """Of up to `texts` unwatermarked texts."""
        return self.figures.entropy(setting, tokens, min(ENTROPY_TEXTS, texts), block_size)

    def entropy_note(self, setting: SamplingSetting, tokens: int, texts: int) -> str:
        """The line about entropy that goes with every table."""
        return entropy_note(self.entropy(setting, tokens, texts))

    def prompt_rows(self, index: int) -> int:
        """Length of the prompt of a text."""
        return len(self.figures.prompt(index))

    def finish(
        self, experiment: str, tables: Sequence[Table], figures: Sequence[Figure], rows: Sequence[Any]
    ) -> None:
        """Shows the tables and writes everything, the rows as data, to the run's folder."""
        for table in tables:
            self.console.print(table.rich())
        data = tuple(asdict(row) for row in rows)
        result = Result(experiment, command_line(), tuple(tables), tuple(figures), data)
        if self.label:
            result = result.labelled(self.label)
        result.save(self.run.folder)
        self.console.print(f"written to {self.run.folder / result.experiment}.json and .md")


@contextmanager
def open_lab(
    model: str, prompts: Path | None, out: Path, label: str | None, seed: int, threads: int | None, batch: int
) -> Iterator[Lab]:
    """Opens or resumes the run in `out`; what a user can mend ends as one line and exit code 1."""
    console = Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
    settings = EngineSettings(threads=threads, max_sequences=batch, max_waiting=1_000_000)
    path = prompts_path(prompts)
    try:
        if label is not None and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", label):
            raise ValueError(f"--label {label!r}: use lower-case letters, digits and single hyphens")
        source = EngineSource(model_path(model), path, settings)
        describe(model, source.model, path, MAX_TOKENS, seed, asdict(settings)).save(out)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        try:
            with Progress(*columns, console=console, transient=True) as progress:
                run = Run(out, source, seed, progress)
                yield Lab(run, source, ModelFigures(run, source), console, label)
        finally:
            source.close()
    except EXPECTED as error:
        typer.echo(f"ttmark: {error}", err=True)
        raise typer.Exit(1) from error


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
