"""An experiment from its options to its files: the run is opened or resumed, measured, shown and saved."""

import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeVar

import typer
from rich.console import Console

from ttmark.evaluation.engine_source import EngineSource
from ttmark.evaluation.options import model_path
from ttmark.evaluation.report import Result
from ttmark.evaluation.run_folder import Run, progress_bars
from ttmark.evaluation.run_manifest import check_identity, folder_hash, machine, versions
from ttmark.gen_service.decoding.request import SequenceFailed
from ttmark.gen_service.engine.errors import EngineError
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.tokenization import TokenizerMissing


def new_app(about: str) -> typer.Typer:
    return typer.Typer(help=about, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@contextmanager
def one_clear_line(expected: tuple[type[Exception], ...] = (ValueError, OSError)) -> Iterator[None]:
    try:
        yield
    except expected as error:
        typer.echo(f"ttmark: {error}", err=True)
        raise typer.Exit(1) from error


PLAIN_WIDTH = 160
MAX_BRANCHES = 8
"""As the services' default."""
EXPECTED = (ValueError, OSError, EngineError, SequenceFailed, TokenizerMissing)
Source = TypeVar("Source", bound=EngineSource)


def as_served(folder: Path, threads: int | None, batch: int) -> EngineSettings:
    """An engine that writes as the service does by default; what runs fastest is kept in the folder."""
    return EngineSettings(
        dtype="auto",
        threads="auto" if threads is None else threads,
        max_sequences=batch,
        max_waiting=1_000_000,
        max_branches=MAX_BRANCHES,
        reproducible=False,
        choices=folder / "choices.json",
    )


def measured_run(
    model: str,
    prompts: Path,
    folder: Path,
    seed: int,
    settings: EngineSettings,
    source: Callable[[str], Source],
    measure: Callable[[Run, Source], Result],
) -> None:
    """What a user can mend ends as one line.

    Args:
        source: makes texts with the model in a folder.
    """
    console = Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
    with one_clear_line(EXPECTED):
        path = model_path(model)
        made = source(path)
        identity = {
            "model": Path(model).name if Path(model).is_dir() else model,
            "model_sha256": folder_hash(Path(path)),
            "prompts_sha256": hashlib.sha256(prompts.read_bytes()).hexdigest(),
            "seed": seed,
        }
        check_identity(
            folder,
            identity,
            engine=asdict(replace(settings, choices=None)),
            versions=versions(),
            machine=machine(),
        )
        with closing(made), progress_bars(console) as progress:
            result = measure(Run(folder, made, seed, progress), made)
        for table in result.tables:
            console.print(table.rich())
        result.save(folder)
        console.print(f"written to {folder / result.experiment}.json and .md")
