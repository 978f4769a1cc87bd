"""`ttmark eval`: experiments on any causal language model, and the tools beside them."""

import hashlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import typer
from rich.console import Console

from ttmark.evaluation.cli.app_and_errors import new_app, one_clear_line
from ttmark.evaluation.cli.null_tables_command import NullTables
from ttmark.evaluation.engine_source import EngineSource
from ttmark.evaluation.experiment import Experiment, Lab, ModelSource
from ttmark.evaluation.experiments.direct import Direct
from ttmark.evaluation.options import (
    EXACT,
    Batch,
    Dtype,
    Label,
    Model,
    NucleusP,
    Out,
    Prompts,
    Seed,
    Temperature,
    Threads,
    TopK,
    chosen_model,
    chosen_prompts,
    model_path,
    run_folder,
)
from ttmark.evaluation.run_folder import Run, progress_bars
from ttmark.evaluation.run_manifest import check_identity, folder_hash, machine, versions
from ttmark.evaluation.simulated import SIMULATED, SimulatedSource
from ttmark.gen_service.engine import EngineError, EngineSettings, SequenceFailed
from ttmark.shared.commands_of_dataclasses import command_of
from ttmark.shared.tokenization import TokenizerMissing

PLAIN_WIDTH = 160
EXPECTED = (ValueError, OSError, EngineError, SequenceFailed, TokenizerMissing)
EXPERIMENTS: tuple[type[Experiment], ...] = (Direct,)


@dataclass(frozen=True, slots=True)
class LabOptions:
    """Those of every experiment."""

    model: Model = None
    prompts: Prompts = None
    out: Out = None
    label: Label = None
    seed: Seed = 0
    threads: Threads = None
    batch: Batch = 32
    dtype: Dtype = EXACT
    temperature: Temperature = None
    top_k: TopK = None
    nucleus: NucleusP = None

    @contextmanager
    def open(self) -> Iterator[Lab]:
        """Opens or resumes the run in `out` or the model's folder; what a user can mend ends as one line."""
        console = Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
        name = chosen_model(self.model)
        prompts = chosen_prompts(self.prompts, name)
        folder = run_folder(self.out, self.model)
        settings = EngineSettings(
            threads=self.threads,
            max_sequences=self.batch,
            max_waiting=1_000_000,
            dtype=self.dtype,
            reproducible=self.dtype == EXACT,
        )
        with one_clear_line(EXPECTED):
            if self.label is not None and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.label):
                raise ValueError(f"--label {self.label!r}: use lower-case letters, digits and single hyphens")
            path = model_path(name)
            source: ModelSource = (
                SimulatedSource() if name == SIMULATED else EngineSource(path, prompts, settings)
            )
            folder.mkdir(parents=True, exist_ok=True)
            check_identity(
                folder,
                {
                    "model": Path(name).name if Path(name).is_dir() else name,
                    "model_sha256": folder_hash(Path(path)),
                    "prompts_sha256": hashlib.sha256(prompts.read_bytes()).hexdigest(),
                    "seed": self.seed,
                },
                engine=asdict(settings),
                versions=versions(),
                machine=machine(),
            )
            try:
                with progress_bars(console) as progress:
                    run = Run(folder, source, self.seed, progress)
                    yield Lab(run, source, console, self.label, self._sampling())
            finally:
                source.close()

    def _sampling(self) -> dict[str, float]:
        given = {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.nucleus}
        return {name: value for name, value in given.items() if value is not None}


def eval_app() -> typer.Typer:
    """The command line."""

    def measure(experiment: Experiment, options: LabOptions) -> None:
        with options.open() as lab:
            experiment.measure(lab)

    app = new_app("What the mark does to texts of any causal language model, and what is found of them.")
    for kind in EXPERIMENTS:
        app.command(kind.name)(command_of(measure, kind, LabOptions))
    app.command(NullTables.name)(command_of(NullTables.run, NullTables))
    return app
