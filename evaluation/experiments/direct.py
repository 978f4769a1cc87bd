"""Direct detection by scheme, block size and length (paper, Tables 1, 2 and 7)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.cells import Cell
from evaluation.detection import FPRS, Detections, detect_texts, detect_under_random_keys
from evaluation.intervals import Interval, mean, ratio_of_means
from evaluation.paper import DIRECT, SCHEME_NAMES, STRICT, DirectFigures, row_name
from evaluation.report.figure import Figure, Panel, Series
from evaluation.report.table import Table, power_of_ten
from evaluation.run import Run
from evaluation.settings import SETTINGS, SamplingSetting, Setting

NULL_FPRS = (1e-1, 1e-2, 1e-3)
STRICT_LENGTH = 200


@dataclass(frozen=True, slots=True)
class DirectPlan:
    """What to measure.

    Attributes:
        lengths: in tokens; texts have the greatest and are cut for the others.
        fewer: texts with blocks of a size, where they are not `texts` (larger blocks take longer to make).
        null_keys: keys under which each text without a watermark is tested for the false positive rate.
    """

    schemes: tuple[str, ...]
    block_sizes: tuple[int, ...]
    setting: SamplingSetting
    lengths: tuple[int, ...]
    texts: int
    null_keys: int = 2
    fewer: tuple[tuple[int, int], ...] = ()

    def count(self, block_size: int) -> int:
        """Texts of a row."""
        return dict(self.fewer).get(block_size, self.texts)

    def cell(self, scheme: str, block_size: int) -> Cell:
        """The texts of a row."""
        return Cell(scheme, block_size, self.setting, max(self.lengths))


@dataclass(frozen=True, slots=True)
class DirectRow:
    """One scheme and block size at one length.

    Attributes:
        gain: mean z over that of single tokens at equal length; None for single tokens.
        covered: share of the tokens that stand in scored blocks.
        score: mean standardised score of a scored block.
        fpr: rates of p <= NULL_FPRS in text without a watermark.
    """

    scheme: str
    block_size: int
    setting: SamplingSetting
    length: int
    texts: int
    tpr: tuple[Interval, ...]
    median_log10_p: Interval
    z: Interval
    gain: Interval | None
    covered: Interval
    score: Interval
    fpr: tuple[Interval, ...]
    null_texts: int


def measure_direct(run: Run, plan: DirectPlan, at: tuple[int, ...] | None = None) -> list[DirectRow]:
    """Generates what is missing and detects everything, at the plan's lengths or at others up to them."""
    plain = run.texts(plan.cell(plan.schemes[0], 1).unmarked(), plan.texts)
    rows = []
    for scheme in plan.schemes:
        singles: dict[int, Detections] = {}
        for block_size in sorted(plan.block_sizes):
            cell = plan.cell(scheme, block_size)
            texts = run.texts(cell, plan.count(block_size))
            for length in at or plan.lengths:
                found = detect_texts(run, cell, texts, length)
                null = detect_under_random_keys(run.seed, cell.watermark(), plain, length, plan.null_keys)
                if block_size == 1:
                    singles[length] = found
                single = singles.get(length) if block_size > 1 else None
                rows.append(_row(cell, length, found, null, single))
    return rows


def _row(
    cell: Cell, length: int, found: Detections, null: Detections, single: Detections | None
) -> DirectRow:
    return DirectRow(
        scheme=str(cell.scheme),
        block_size=cell.block_size,
        setting=cell.setting,
        length=length,
        texts=len(found.z),
        tpr=tuple(found.rate(fpr) for fpr in FPRS),
        median_log10_p=found.median_log10_p(),
        z=found.mean_z(),
        gain=ratio_of_means(found.z, single.z) if single else None,
        covered=mean(found.covered),
        score=mean(found.score),
        fpr=tuple(null.rate(fpr) for fpr in NULL_FPRS),
        null_texts=len(null.z),
    )


def texts_note(rows: Sequence[DirectRow]) -> str:
    """How many texts the rows are from."""
    counts = {row.block_size: row.texts for row in rows}
    if len(set(counts.values())) == 1:
        return f"{rows[0].texts} texts per row"
    return "Texts per row: " + ", ".join(f"{count} with r = {size}" for size, count in sorted(counts.items()))


def direct_tables(rows: list[DirectRow], notes: tuple[str, ...] = ()) -> tuple[Table, ...]:
    """One table per length, laid out like the paper's, its figures beside ours where it has them."""
    lengths = sorted({row.length for row in rows})
    return tuple(_table([row for row in rows if row.length == length], length, notes) for length in lengths)


def _table(rows: list[DirectRow], length: int, notes: tuple[str, ...]) -> Table:
    columns = (
        "",
        *(f"TPR at FPR {100 * fpr:g} %" for fpr in FPRS),
        "median p",
        "mean z",
        "gain in mean z",
        "FPR measured at 1 %",
        "paper: TPR, median p",
    )
    first = rows[0]
    return Table(
        f"Direct detection, {length} tokens, {first.setting}",
        columns,
        tuple(_cells(row) for row in rows),
        (
            f"{texts_note(rows)}, each with a key of its own; false positive rate over"
            f" {first.null_texts} tests of texts without a watermark; brackets are 95 % intervals.",
            *notes,
        ),
    )


def _cells(row: DirectRow) -> tuple[str, ...]:
    paper = _paper_figures(row)
    return (
        row_name(row.scheme, row.block_size),
        *(rate.percent() for rate in row.tpr),
        power_of_ten(row.median_log10_p.estimate),
        str(row.z),
        str(row.gain) if row.gain else "",
        row.fpr[1].percent(),
        _paper_text(paper) if paper else "",
    )


def _paper_figures(row: DirectRow) -> DirectFigures | None:
    """What the paper has for the same filters; its temperature there is 1, ours may be calibrated."""
    if row.setting == SETTINGS[Setting.STRICT]:
        return STRICT.get((row.scheme, row.block_size)) if row.length == STRICT_LENGTH else None
    default = SETTINGS[Setting.DEFAULT]
    if (row.setting.top_k, row.setting.top_p) != (default.top_k, default.top_p):
        return None
    return DIRECT.get((row.scheme, row.block_size, row.length))


def _paper_text(figures: DirectFigures) -> str:
    rates = " / ".join(f"{100 * rate:.1f}" for rate in figures.tpr)
    return f"{rates} %, {power_of_ten(float(np.log10(figures.median_p)))}"


def direct_figure(name: str, measured: Sequence[Sequence[DirectRow]]) -> Figure:
    """Mean z at the greatest length, one panel for each plan that was measured."""
    panels = []
    for rows in measured:
        longest = max(row.length for row in rows)
        kept = [row for row in rows if row.length == longest]
        series = []
        for block_size in sorted({row.block_size for row in kept}):
            chosen = [row for row in kept if row.block_size == block_size]
            schemes = tuple(SCHEME_NAMES[row.scheme] for row in chosen)
            series.append(Series(f"r = {block_size}", schemes, tuple(row.z for row in chosen)))
        panels.append(Panel(f"{rows[0].setting}, {longest} tokens", "", "mean z", tuple(series), "bars"))
    return Figure(name, "Direct detection", tuple(panels))
