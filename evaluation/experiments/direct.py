"""`direct`, `blocks`: direct detection by scheme, block size and length (paper, Tables 1, 2 and 7)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ttmark.evaluation.direct_and_aligned import FPRS, Detections, detect_texts, detect_under_random_keys
from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import SETTINGS, Cell, SamplingSetting, Setting
from ttmark.evaluation.intervals import Interval, mean, ratio_of_means, ratio_of_medians
from ttmark.evaluation.options import SCHEMES, BlockSizes, Lengths, Schemes, Settings, TextsInTurn, in_turn
from ttmark.evaluation.paper import DIRECT, STRICT, row_name
from ttmark.evaluation.report.plot_data import Figure, Panel, Series
from ttmark.evaluation.report.result import Table, groups, power_of_ten, rate_name, table_by
from ttmark.evaluation.run_folder import PromptRows, Run, rows_per_token, seconds_per_thousand
from ttmark.shared.watermark.schemes.registry import scheme_title

NULL_FPRS = (1e-1, 1e-2, 1e-3)
STRICT_LENGTH = 200


@dataclass(frozen=True, slots=True)
class DirectRow:
    """One cell at one length.

    Attributes:
        deviate: the median p-value as a normal deviate.
        gain: `deviate` over that of single tokens at equal length, as the paper's median p-values have it;
            None where those were not measured.
        mean_gain: mean z over that of single tokens, as Theorems 1 and 2 have it.
        fpr: rates of p <= NULL_FPRS in text without a watermark.
        seconds: wall time per 1,000 tokens in the batch that made the texts.
        rows: rows of forward passes per token, prompts left out.
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
    seconds: float
    rows: float


def grid(
    schemes: Sequence[str], counts: Mapping[int, int], setting: SamplingSetting, tokens: int
) -> dict[Cell, int]:
    """The cells of every scheme and block size, single tokens first, each with its number of texts.

    Args:
        counts: texts by block size; larger blocks take longer to make.
        tokens: of each text; for shorter lengths texts are cut.
    """
    by_size = sorted(counts.items())
    return {Cell(scheme, size, setting, tokens): count for scheme in schemes for size, count in by_size}


def measure_direct(
    run: Run, cells: Mapping[Cell, int], lengths: Sequence[int], prompt_rows: PromptRows, null_keys: int = 2
) -> list[DirectRow]:
    """Generates what is missing of the texts of each cell, and detects all of them at each length.

    Args:
        cells: alike but for the watermark; blocks are compared with the single tokens that stand before them.
        null_keys: under which each text without a watermark is tested for the false positive rate.
    """
    plain = run.texts(next(iter(cells)).unmarked(), max(cells.values()))
    singles: dict[tuple[Cell, int], Detections] = {}
    rows = []
    for cell, count in cells.items():
        texts, made = run.texts(cell, count), run.stored(cell)
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
                    seconds=seconds_per_thousand(made),
                    rows=rows_per_token(made, prompt_rows),
                )
            )
    return rows


def texts_note(rows: Sequence[DirectRow]) -> str:
    """How many texts the rows are from."""
    counts = {row.block_size: row.texts for row in rows}
    if len(set(counts.values())) == 1:
        return f"{rows[0].texts} texts per row"
    return "Texts per row: " + ", ".join(f"{count} with r = {size}" for size, count in sorted(counts.items()))


def direct_tables(rows: Sequence[DirectRow], notes: Sequence[str] = ()) -> list[Table]:
    """One table per length, laid out like the paper's, its figures beside ours where it has them.

    Pages print that of the shortest.
    """
    by_length = sorted(groups(rows, lambda r: r.length).items())
    printed, *longer = (_table(rows, length, notes) for length, rows in by_length)
    return [printed, *(replace(table, aside=True) for table in longer)]


def _table(rows: Sequence[DirectRow], length: int, notes: Sequence[str]) -> Table:
    texts = (
        f"{texts_note(rows)}, each with a key of its own; false positive rate over"
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
            "paper: TPR, median p": _paper_text,
        },
        (texts, *notes),
    )


def _tpr(number: int) -> Callable[[DirectRow], str]:
    return lambda row: row.tpr[number].percent()


TPR_COLUMNS = {f"TPR at FPR {rate_name(fpr)}": _tpr(number) for number, fpr in enumerate(FPRS)}


def _paper_text(row: DirectRow) -> str | None:
    """What the paper has for the same filters; its temperature there is 1, ours may be calibrated."""
    figures, default = None, SETTINGS[Setting.DEFAULT]
    if row.setting == SETTINGS[Setting.STRICT] and row.length == STRICT_LENGTH:
        figures = STRICT.get((row.scheme, row.block_size))
    elif (row.setting.top_k, row.setting.top_p) == (default.top_k, default.top_p):
        figures = DIRECT.get((row.scheme, row.block_size, row.length))
    if figures is None:
        return None
    rates = " / ".join(f"{100 * rate:.1f}" for rate in figures.tpr)
    return f"{rates} %, {power_of_ten(float(np.log10(figures.median_p)))}"


def direct_figure(name: str, measured: Sequence[Sequence[DirectRow]]) -> Figure:
    """Mean z at the greatest length, one panel for each plan that was measured."""
    panels = []
    for rows in measured:
        longest = max(row.length for row in rows)
        kept = [row for row in rows if row.length == longest]
        series = [
            Series(
                f"r = {size}", tuple(scheme_title(row.scheme) for row in of), tuple(row.deviate for row in of)
            )
            for size, of in sorted(groups(kept, lambda row: row.block_size).items())
        ]
        title = f"{rows[0].setting}, {longest} tokens"
        panels.append(Panel(title, "", "median p-value as a normal deviate", tuple(series), "bars"))
    return Figure(name, "Direct detection", tuple(panels))


def finish_direct(
    lab: Lab, experiment: str, grids: Sequence[Mapping[Cell, int]], lengths: Sequence[int]
) -> None:
    """Measures the cells of each sampling setting and writes one result."""
    tables: list[Table] = []
    measured: list[list[DirectRow]] = []
    for cells in grids:
        first = next(iter(cells))
        note = lab.entropy_note(first.setting, first.tokens, max(cells.values()))
        measured.append(measure_direct(lab.run, cells, lengths, lab.prompt_rows))
        tables += direct_tables(measured[-1], (note,))
    data = [row for rows in measured for row in rows]
    lab.finish(experiment, tables, data, [direct_figure(experiment, measured)])


@dataclass(frozen=True, slots=True)
class Direct:
    """Direct detection: TPR at fixed FPR, median p-value, and the gain over single tokens."""

    name: ClassVar[str] = "direct"
    title: ClassVar[str] = "The gain of pairs by sampling setting"

    settings: Settings = (Setting.STRICT, Setting.DEFAULT)
    schemes: Schemes = ("synthid",)
    block_sizes: BlockSizes = (1, 2)
    lengths: Lengths = (200,)
    texts: TextsInTurn = (100,)

    def measure(self, lab: Lab) -> None:
        counts = [dict.fromkeys(self.block_sizes, in_turn(self.texts, i)) for i in range(len(self.settings))]
        grids = [
            grid(self.schemes, count, lab.setting(name), max(self.lengths))
            for name, count in zip(self.settings, counts, strict=True)
        ]
        finish_direct(lab, self.name, grids, self.lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Detection of texts in blocks of one, two and three tokens (the paper's Tables 1 and 7)."""

    name: ClassVar[str] = "blocks"
    title: ClassVar[str] = "Blocks of one, two and three tokens"

    settings: Settings = (Setting.ISO,)
    schemes: Schemes = SCHEMES
    block_sizes: BlockSizes = (1, 2, 3)
    lengths: Lengths = (200, 400)
    texts: TextsInTurn = (500,)

    def measure(self, lab: Lab) -> None:
        counts = {size: in_turn(self.texts, number) for number, size in enumerate(self.block_sizes)}
        longest = max(self.lengths)
        grids = [grid(self.schemes, counts, lab.setting(name), longest) for name in self.settings]
        finish_direct(lab, self.name, grids, self.lengths)
