"""`ttmark eval`: direct detection on texts of any causal language model, and what measures beside it."""

import json
import logging
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import numpy as np
import typer
from numpy.typing import NDArray

from ttmark.evaluation.cli.app_and_errors import new_app, one_clear_line
from ttmark.evaluation.cli.measured_run import measured_run
from ttmark.evaluation.cli.quality import Quality
from ttmark.evaluation.cli.results import Results
from ttmark.evaluation.engine_source import EngineSource
from ttmark.evaluation.experiment_cells import SETTINGS, Cell, SamplingSetting, Setting, prf_key
from ttmark.evaluation.intervals import (
    Interval,
    Sample,
    bootstrap,
    clopper_pearson,
    mean,
    ratio_of_means,
    ratio_of_medians,
)
from ttmark.evaluation.language_model import LanguageModel, supports
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
    run_folder,
)
from ttmark.evaluation.report.result import Result, Table, groups, power_of_ten, rate_name, row_name, table_by
from ttmark.evaluation.run_folder import Completion, Run
from ttmark.evaluation.run_manifest import command_line, machine, versions
from ttmark.evaluation.simulated import SIMULATED, SimulatedSource
from ttmark.gen_service.engine import EngineSettings
from ttmark.shared.commands_of_dataclasses import command_of
from ttmark.shared.watermark import DirectEvidence, Watermark, detect_direct, scheme_names

FPRS = (1e-3, 1e-4, 1e-5)
"""Theoretical false positive rates at which the paper states the true positive rate."""
NULL_FPRS = (1e-1, 1e-2, 1e-3)


@dataclass(frozen=True, slots=True)
class Detections:
    """One figure per text.

    Attributes:
        log10_p: exact p-value.
        z: the paper's z (Eq. 6). How far it strays by chance differs between schemes.
    """

    log10_p: Sample
    z: Sample

    def rate(self, fpr: float) -> Interval:
        """Share of texts with p <= fpr: the TPR on watermarked texts, the FPR on others."""
        return clopper_pearson(int((self.log10_p <= np.log10(fpr)).sum()), len(self.log10_p))

    @property
    def deviates(self) -> Sample:
        """p-values as normal deviates [texts]: unlike `z`, they compare between schemes."""
        from scipy.stats import norm  # optional: `--help` works without it

        deviates: Sample = norm.isf(10.0**self.log10_p)
        return deviates

    def median_deviate(self) -> Interval:
        """The median p-value as a normal deviate."""
        return bootstrap(lambda values: np.median(values, axis=-1), self.deviates)

    def median_log10_p(self) -> Interval:
        """Median of log10 p."""
        return bootstrap(lambda values: np.median(values, axis=-1), self.log10_p)


def detect_texts(run: Run, cell: Cell, texts: Sequence[Completion], length: int) -> Detections:
    """The first `length` tokens of each text under its own key."""
    watermark = cell.watermark()
    return _detections(
        [detect_direct(watermark, cell.key(run.seed, text.index), text.tokens(length)) for text in texts]
    )


def detect_under_random_keys(
    seed: int, watermark: Watermark, texts: Sequence[Completion], length: int, keys: int
) -> Detections:
    """The null: the first `length` tokens of each text under `keys` keys that had no part in it."""
    evidence = [
        detect_direct(watermark, prf_key(seed, "null", index, text.index), text.tokens(length))
        for text in texts
        for index in range(keys)
    ]
    return _detections(evidence)


def _detections(evidence: Sequence[DirectEvidence]) -> Detections:
    return Detections(np.array([item.log10_p for item in evidence]), np.array([item.z for item in evidence]))


@dataclass(frozen=True, slots=True)
class DirectRow:
    """One cell at one length.

    Attributes:
        deviate: the median p-value as a normal deviate.
        gain: `deviate` over that of single tokens at equal length, as the paper's median p-values have it;
            None where those were not measured.
        mean_gain: mean z over that of single tokens, as Theorems 1 and 2 have it.
        fpr: rates of p <= NULL_FPRS in text without a watermark.
    """

    scheme: str
    block_size: int
    setting: SamplingSetting
    length: int
    texts: int
    tpr: tuple[Interval, ...]
    median_log10_p: Interval
    deviate: Interval
    z: Interval
    gain: Interval | None
    mean_gain: Interval | None
    fpr: tuple[Interval, ...]
    null_texts: int


def grid(
    schemes: Sequence[str], block_sizes: Sequence[int], setting: SamplingSetting, tokens: int
) -> list[Cell]:
    """The cells of every scheme and block size, single tokens first.

    Args:
        tokens: of each text; for shorter lengths texts are cut.
    """
    return [Cell(scheme, size, setting, tokens) for scheme in schemes for size in sorted(block_sizes)]


def measure_direct(
    run: Run, cells: Sequence[Cell], count: int, lengths: Sequence[int], null_keys: int = 2
) -> list[DirectRow]:
    """Generates what is missing of the `count` texts of each cell, and detects all of them at each length.

    Args:
        cells: alike but for the watermark; blocks are compared with the single tokens that stand before them.
        null_keys: under which each text without a watermark is tested for the false positive rate.
    """
    plain = run.texts(cells[0].unmarked(), count)
    singles: dict[tuple[Cell, int], Detections] = {}
    rows = []
    for cell in cells:
        texts = run.texts(cell, count)
        for length in lengths:
            found = detect_texts(run, cell, texts, length)
            null = detect_under_random_keys(run.seed, cell.watermark(), plain, length, null_keys)
            single = singles.get((replace(cell, block_size=1), length))
            singles[cell, length] = found
            rows.append(
                DirectRow(
                    scheme=str(cell.scheme),
                    block_size=cell.block_size,
                    setting=cell.setting,
                    length=length,
                    texts=count,
                    tpr=tuple(found.rate(fpr) for fpr in FPRS),
                    median_log10_p=found.median_log10_p(),
                    deviate=found.median_deviate(),
                    z=mean(found.z),
                    gain=ratio_of_medians(found.deviates, single.deviates) if single else None,
                    mean_gain=ratio_of_means(found.z, single.z) if single else None,
                    fpr=tuple(null.rate(fpr) for fpr in NULL_FPRS),
                    null_texts=len(null.z),
                )
            )
    return rows


def direct_tables(rows: Sequence[DirectRow], notes: Sequence[str] = ()) -> list[Table]:
    """One table per length, laid out like the paper's; pages print that of the shortest."""
    by_length = sorted(groups(rows, lambda r: r.length).items())
    printed, *longer = (_table(rows, length, notes) for length, rows in by_length)
    return [printed, *(replace(table, aside=True) for table in longer)]


def _table(rows: Sequence[DirectRow], length: int, notes: Sequence[str]) -> Table:
    texts = (
        f"{rows[0].texts} texts per row, each with a key of its own; false positive rate over"
        f" {rows[0].null_texts} tests of texts without a watermark; brackets are 95 % intervals."
        " Gain: ratio of the normal deviates of median p-values, over single tokens."
    )
    return table_by(
        f"Direct detection, {length} tokens, {rows[0].setting}",
        rows,
        {
            "": lambda row: row_name(row.scheme, row.block_size),
            **TPR_COLUMNS,
            "median p": lambda row: power_of_ten(row.median_log10_p.estimate),
            "as a normal deviate": lambda row: row.deviate,
            "gain": lambda row: row.gain,
            "mean z": lambda row: row.z,
            "gain in mean z": lambda row: row.mean_gain,
            "FPR measured at 1e-2": lambda row: row.fpr[1].percent(),
        },
        (texts, *notes),
    )


def _tpr(number: int) -> Callable[[DirectRow], str]:
    return lambda row: row.tpr[number].percent()


TPR_COLUMNS = {f"TPR at FPR {rate_name(fpr)}": _tpr(number) for number, fpr in enumerate(FPRS)}


@dataclass(frozen=True, slots=True)
class EntropyReport:
    """Figures per token of the filtered distributions along texts without a watermark.

    Attributes:
        bits: entropy.
        candidates: mean number of tokens that the filters leave (the paper's m).
    """

    tokens: int
    bits: Interval
    candidates: Interval


def entropy_bits(probs: NDArray[np.float64]) -> float:
    """Shannon entropy of positive probabilities."""
    return float(-(probs * np.log2(probs)).sum())


def measure_entropy(
    model: LanguageModel, setting: SamplingSetting, texts: Sequence[tuple[Sequence[int], Sequence[int]]]
) -> EntropyReport:
    """Of (prompt, completion) pairs; the intervals treat texts as the independent unit."""
    figures = []
    for prompt, completion in texts:
        rows = supports(model.logits(prompt, completion), setting)
        figures.append(
            [np.mean([entropy_bits(row.probs) for row in rows]), np.mean([len(row.ids) for row in rows])]
        )
    bits, counts = np.array(figures).T
    return EntropyReport(sum(len(completion) for _, completion in texts), mean(bits), mean(counts))


def entropy_note(report: EntropyReport) -> str:
    """The line about entropy that goes with every table."""
    return (
        f"Entropy {report.bits.estimate:.2f} bits per token after the filters,"
        f" {report.candidates.estimate:.1f} candidates on average ({report.tokens} tokens)."
    )


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
        name = chosen_model(self.model)
        prompts = chosen_prompts(self.prompts, name)
        settings = EngineSettings(
            threads=self.threads,
            max_sequences=self.batch,
            max_waiting=1_000_000,
            dtype=self.dtype,
            reproducible=self.dtype == EXACT,
        )

        def source(path: str) -> Source:
            if self.label is not None and not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.label):
                raise ValueError(f"--label {self.label!r}: use lower-case letters, digits and single hyphens")
            return SimulatedSource() if name == SIMULATED else EngineSource(path, prompts, settings)

        measured_run(
            name, prompts, run_folder(self.out, self.model), self.seed, settings, source, self._measured
        )

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
    for kind in (Results, Direct, Quality, NullTables):
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
