"""`strict`: strict sampling (paper, Table 2), and the same at the length where single tokens nearly fail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ttmark.evaluation.direct_and_aligned import FPRS, detect_texts
from ttmark.evaluation.entropy import EntropyReport, entropy_note
from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Cell, Setting
from ttmark.evaluation.experiments.direct import TPR_COLUMNS, DirectRow, grid, measure_direct
from ttmark.evaluation.intervals import Interval, bootstrap
from ttmark.evaluation.options import SCHEMES, Length, Schemes, Settings, Texts
from ttmark.evaluation.paper import row_name
from ttmark.evaluation.report.result import Table, power_of_ten, table_by
from ttmark.evaluation.run_folder import Run

WEAK_TPR = 0.075
"""Middle of the 5 to 10 % of TPR at 1e-5 that the paper's single-token rows have."""
SHORTEST, STEP = 16, 4


@dataclass(frozen=True, slots=True)
class Strict:
    """Strict sampling (the paper's Table 2), and at lengths where single tokens fail as they do there."""

    name: ClassVar[str] = "strict"
    title: ClassVar[str] = "Strict sampling"

    settings: Settings = (Setting.STRICT,)
    schemes: Schemes = SCHEMES
    length: Length = 200
    texts: Texts = 300

    def measure(self, lab: Lab) -> None:
        tables: list[Table] = []
        data: list[DirectRow] = []
        for name in self.settings:
            setting = lab.setting(name)
            report = lab.entropy(setting, self.length, self.texts)
            grids = [
                grid((scheme,), {1: self.texts, 2: self.texts}, setting, self.length)
                for scheme in self.schemes
            ]
            weak = ", at the length where single tokens reach about 7.5 % at FPR 1e-5"
            for at_weak_length in (False, True):
                rows = []
                for cells in grids:
                    length = weak_length(lab.run, cells) if at_weak_length else self.length
                    rows += measure_direct(lab.run, cells, (length,), lab.prompt_rows)
                title = f"Strict sampling, {setting}{weak * at_weak_length}"
                tables.append(replace(strict_table(rows, report, title), aside=at_weak_length))
                data += rows
        lab.finish(self.name, tables, data)


def weak_length(run: Run, cells: Mapping[Cell, int]) -> int:
    """The length at which the TPR at 1e-5 of the first cell, of single tokens, is nearest to WEAK_TPR."""
    cell, count = next(iter(cells.items()))
    texts = run.texts(cell, count)
    lengths = range(min(SHORTEST, cell.tokens), cell.tokens + 1, STEP)

    def distance(length: int) -> float:
        return abs(detect_texts(run, cell, texts, length).share(FPRS[-1]) - WEAK_TPR)

    return min(lengths, key=distance)


def tpr_ratio(pair: DirectRow, single: DirectRow) -> Interval:
    """Ratio of the TPR at 1e-5."""
    samples = [_hits(pair), _hits(single)]
    return bootstrap(lambda top, bottom: top.mean(axis=-1) / np.maximum(bottom.mean(axis=-1), 1e-9), *samples)


def _hits(row: DirectRow) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    found = round(row.tpr[-1].estimate * row.texts)
    return np.concatenate([np.ones(found), np.zeros(row.texts - found)])


def strict_table(rows: Sequence[DirectRow], report: EntropyReport, title: str) -> Table:
    """Laid out like the paper's Table 2."""
    singles = {row.scheme: row for row in rows if row.block_size == 1}

    def over_single(row: DirectRow) -> Interval | None:
        single = singles[row.scheme]
        return tpr_ratio(row, single) if row.block_size > 1 and single.tpr[-1].estimate > 0 else None

    return table_by(
        title,
        rows,
        {
            "": lambda row: row_name(row.scheme, row.block_size),
            "tokens": lambda row: row.length,
            "candidates": lambda _: f"{report.candidates.estimate:.2f}",
            **TPR_COLUMNS,
            "TPR at 1e-5 over single": over_single,
            "median p": lambda row: power_of_ten(row.median_log10_p.estimate),
            "gain": lambda row: row.gain,
            "gain in mean z": lambda row: row.mean_gain,
            "s per 1,000 tokens": lambda row: f"{row.seconds:.2f}",
            "rows per token": lambda row: f"{row.rows:.2f}",
        },
        (f"{rows[0].texts} texts per row; 95 % intervals.", entropy_note(report)),
    )
