"""Detection against top-p (paper, Figure 3)."""

from collections.abc import Sequence
from dataclasses import replace

from evaluation.experiments.direct import DirectPlan, DirectRow, measure_direct
from evaluation.paper import SCHEME_NAMES, row_name
from evaluation.report.figure import Figure, Panel, Series
from evaluation.report.table import Table
from evaluation.run import Run

TOP_P = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


def measure_topp(run: Run, plan: DirectPlan, values: Sequence[float]) -> list[DirectRow]:
    """The plan at each top-p; the rest of its setting stays."""
    rows = []
    for top_p in values:
        rows += measure_direct(run, replace(plan, setting=replace(plan.setting, top_p=top_p)))
    return rows


def topp_table(rows: Sequence[DirectRow], notes: tuple[str, ...]) -> Table:
    """TPR at FPR 0.1 % by scheme, block size and top-p."""
    values = sorted({row.setting.top_p for row in rows})
    kinds = list(dict.fromkeys((row.scheme, row.block_size) for row in rows))
    first = rows[0]
    by_kind = {(row.scheme, row.block_size, row.setting.top_p): row for row in rows}
    return Table(
        f"TPR at FPR 0.1 % by top-p; top-k {first.setting.top_k}, T {first.setting.temperature:g},"
        f" {first.length} tokens",
        ("", *(f"top-p {value:g}" for value in values)),
        tuple(
            (row_name(scheme, size), *(by_kind[scheme, size, value].tpr[0].percent() for value in values))
            for scheme, size in kinds
        ),
        (f"{first.texts} texts per cell; 95 % intervals.", *notes),
    )


def topp_figure(rows: Sequence[DirectRow]) -> Figure:
    """One panel per scheme, single tokens dashed."""
    panels = []
    for scheme in dict.fromkeys(row.scheme for row in rows):
        series = []
        for size in sorted({row.block_size for row in rows}):
            kept = [row for row in rows if (row.scheme, row.block_size) == (scheme, size)]
            series.append(
                Series(
                    f"r = {size}",
                    tuple(row.setting.top_p for row in kept),
                    tuple(row.tpr[0] for row in kept),
                    dashed=size == 1,
                )
            )
        panels.append(Panel(SCHEME_NAMES[scheme], "top-p", "TPR at FPR 0.1 %", tuple(series)))
    return Figure("topp", "Effect of top-p", tuple(panels))
