"""Strict sampling (paper, Table 2): candidates, detection and time, also where single tokens nearly fail."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.batch_cost import PromptRows, rows_per_token, seconds_per_thousand
from evaluation.cells import Cell
from evaluation.detection import FPRS, detect_texts
from evaluation.entropy import EntropyReport
from evaluation.experiments.direct import DirectPlan, DirectRow, measure_direct
from evaluation.intervals import Interval, bootstrap
from evaluation.paper import row_name
from evaluation.report.table import Table, power_of_ten
from evaluation.run import Run

WEAK_TPR = 0.075
"""Middle of the 5 to 10 % of TPR at 1e-5 that the paper's single-token rows have."""
SHORTEST, STEP = 16, 4


@dataclass(frozen=True, slots=True)
class StrictRow:
    """A row of Table 2.

    Attributes:
        seconds: wall time per 1,000 tokens in the batch that made the texts.
        rows: rows of forward passes per token, prompts left out.
    """

    direct: DirectRow
    seconds: float
    rows: float


def measure_strict(
    run: Run, plan: DirectPlan, prompt_rows: PromptRows, *, at_weak_length: bool
) -> list[StrictRow]:
    """Rows of the plan's first length, or per scheme of the length where single tokens are weak."""
    rows = []
    for scheme in plan.schemes:
        length = weak_length(run, plan, scheme) if at_weak_length else plan.lengths[0]
        single = DirectPlan((scheme,), plan.block_sizes, plan.setting, plan.lengths, plan.texts)
        for row in measure_direct(run, single, at=(length,)):
            texts = run.stored(plan.cell(scheme, row.block_size))
            rows.append(StrictRow(row, seconds_per_thousand(texts), rows_per_token(texts, prompt_rows)))
    return rows


def weak_length(run: Run, plan: DirectPlan, scheme: str) -> int:
    """The length at which the single-token TPR at 1e-5 is nearest to WEAK_TPR."""
    cell: Cell = plan.cell(scheme, 1)
    texts = run.texts(cell, plan.texts)
    longest = max(plan.lengths)
    lengths = range(min(SHORTEST, longest), longest + 1, STEP)

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


def strict_table(
    rows: Sequence[StrictRow], report: EntropyReport, title: str, notes: tuple[str, ...]
) -> Table:
    """Laid out like the paper's Table 2."""
    singles = {row.direct.scheme: row.direct for row in rows if row.direct.block_size == 1}
    candidates = f"{report.candidates.estimate:.2f}"
    return Table(
        title,
        (
            "",
            "tokens",
            "candidates",
            *(f"TPR at FPR {100 * fpr:g} %" for fpr in FPRS),
            "TPR at 0.001 % over single",
            "median p",
            "gain in mean z",
            "s per 1,000 tokens",
            "rows per token",
        ),
        tuple(
            (
                row_name(row.direct.scheme, row.direct.block_size),
                str(row.direct.length),
                candidates,
                *(rate.percent() for rate in row.direct.tpr),
                str(tpr_ratio(row.direct, singles[row.direct.scheme]))
                if row.direct.block_size > 1 and singles[row.direct.scheme].tpr[-1].estimate > 0
                else "",
                power_of_ten(row.direct.median_log10_p.estimate),
                str(row.direct.gain) if row.direct.gain else "",
                f"{row.seconds:.2f}",
                f"{row.rows:.2f}",
            )
            for row in rows
        ),
        (f"{rows[0].direct.texts} texts per row; 95 % intervals.", *notes),
    )
