"""`ttmark eval`: direct detection on texts of any causal language model, and the tools beside it."""

import hashlib
import json
import logging
import re
import sys
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import typer
from rich.console import Console

from ttmark.evaluation.cli.app_and_errors import new_app, one_clear_line
from ttmark.evaluation.command_line import command_line
from ttmark.evaluation.engine_source import EngineSource
from ttmark.evaluation.experiment_cells import SETTINGS, Cell, SamplingSetting, Setting
from ttmark.evaluation.experiments.direct import (
    DirectRow,
    EntropyReport,
    direct_tables,
    entropy_note,
    grid,
    measure_direct,
    measure_entropy,
)
from ttmark.evaluation.null_tables.build import TABLES, write_table
from ttmark.evaluation.options import (
    EXACT,
    Batch,
    BlockSizes,
    Dtype,
    Label,
    Lengths,
    Model,
    NucleusP,
    Out,
    Prompts,
    Schemes,
    Seed,
    Settings,
    Temperature,
    Texts,
    Threads,
    TopK,
    chosen_model,
    chosen_prompts,
    model_path,
    run_folder,
)
from ttmark.evaluation.report.result import Result, Table
from ttmark.evaluation.run_folder import Run, progress_bars
from ttmark.evaluation.run_manifest import check_identity, folder_hash, machine, versions
from ttmark.evaluation.simulated import SIMULATED, SimulatedSource
from ttmark.gen_service.engine import EngineError, EngineSettings, SequenceFailed
from ttmark.shared.commands_of_dataclasses import command_of
from ttmark.shared.tokenization import TokenizerMissing
from ttmark.shared.watermark import Watermark, scheme_names

PLAIN_WIDTH = 160
EXPECTED = (ValueError, OSError, EngineError, SequenceFailed, TokenizerMissing)
ENTROPY_TEXTS = 30
Source = EngineSource | SimulatedSource


@dataclass(frozen=True, slots=True)
class Direct:
    """Direct detection: TPR at fixed FPR, median p-value, and the gain over single tokens."""

    name: ClassVar[str] = "direct"

    settings: Settings = (Setting.STRICT, Setting.DEFAULT)
    schemes: Schemes = ("synthid",)
    block_sizes: BlockSizes = (1, 2)
    lengths: Lengths = (200,)
    texts: Texts = 100
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

    def run(self) -> None:
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
            source: Source = SimulatedSource() if name == SIMULATED else EngineSource(path, prompts, settings)
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
                    result = self._measured(Run(folder, source, self.seed, progress), source)
            finally:
                source.close()
            for table in result.tables:
                console.print(table.rich())
            result.save(folder)
            console.print(f"written to {folder / result.experiment}.json and .md")

    def _measured(self, run: Run, source: Source) -> Result:
        """Makes the texts that are missing and detects all of them."""
        tables: list[Table] = []
        data: list[DirectRow] = []
        longest = max(self.lengths)
        replaced = {"temperature": self.temperature, "top_k": self.top_k, "top_p": self.nucleus}
        given = {name: value for name, value in replaced.items() if value is not None}
        for name in self.settings:
            setting = replace(SETTINGS[name], **cast(Any, given))
            note = entropy_note(self._entropy(run, source, setting, longest))
            cells = grid(self.schemes, self.block_sizes, setting, longest)
            rows = measure_direct(run, cells, self.texts, self.lengths)
            tables += direct_tables(rows, (note,))
            data += rows
        called = "-".join(filter(None, (self.name, self.label)))
        plain = tuple(map(asdict, data))
        return Result(called, command_line(without="--out"), tuple(tables), plain, machine(), versions())

    def _entropy(self, run: Run, source: Source, setting: SamplingSetting, tokens: int) -> EntropyReport:
        """Along unwatermarked texts of `tokens` tokens."""
        plain = run.texts(Cell(None, 1, setting, tokens), min(ENTROPY_TEXTS, self.texts))
        prompts = source.prompts
        pairs = [(prompts[text.index % len(prompts)], text.token_ids) for text in plain]
        return measure_entropy(source.language_model, setting, pairs)


def eval_app() -> typer.Typer:
    """The command line."""
    app = new_app("What the mark does to texts of any causal language model, and what is found of them.")
    for kind in (Direct, NullTables):
        app.command(kind.name)(command_of(kind.run, kind))
    return app


@dataclass(frozen=True, slots=True)
class NullTables:
    """Build null tables, of the schemes' defaults or other parameters, two or three minutes each."""

    name: ClassVar[str] = "null-tables"

    schemes: Schemes = tuple(scheme_names())
    block_sizes: BlockSizes = (2, 1, 3)
    parameters: Annotated[
        tuple[str, ...],
        typer.Option("--param", metavar="NAME=VALUE", help="Of the schemes; may be repeated."),
    ] = ()
    out: Annotated[Path, typer.Option(help="Folder; default: the tables that ship.", show_default=False)] = (
        TABLES
    )
    seed: int = 1

    def run(self) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
        with one_clear_line():
            pairs = (text.partition("=") for text in self.parameters)
            given = {name: json.loads(value) for name, _, value in pairs}
            of_size = product(self.block_sizes, self.schemes)
            watermarks = [Watermark(scheme, size, parameters=given) for size, scheme in of_size]
        for watermark in watermarks:
            typer.echo(write_table(watermark, self.seed, self.out or TABLES))
