"""Detection power against cost: what the rows of a forward pass buy."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.batch_cost import PromptRows, rows_per_token
from evaluation.cells import Cell, Parameters
from evaluation.detection import FPRS, detect_texts
from evaluation.intervals import Interval
from evaluation.paper import SCHEME_NAMES
from evaluation.report.figure import Figure, Panel, Series
from evaluation.report.table import Table, power_of_ten
from evaluation.run import Run
from evaluation.settings import SamplingSetting


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to watermark."""

    scheme: str
    block_size: int
    max_branches: int | None = None
    parameters: Parameters = ()

    @property
    def label(self) -> str:
        """Short, for a point in a plot."""
        parts = [f"{SCHEME_NAMES[self.scheme]} r={self.block_size}"]
        if self.max_branches:
            parts.append(f"b={self.max_branches}")
        return " ".join([*parts, *(f"{name}={value:g}" for name, value in self.parameters)])


CONTENDERS = (
    *(Contender("synthid", 2, branches) for branches in (4, 8, 16)),
    *(Contender("gumbel", 2, branches) for branches in (4, 8, 16)),
    *(Contender(scheme, size) for scheme in ("synthid", "mcmark", "gumbel") for size in (1, 2)),
    *(Contender(scheme, 3, 8) for scheme in ("synthid", "gumbel")),
    *(Contender("synthid", size, None, (("depth", 20),)) for size in (1, 2)),
    *(Contender("mcmark", size, None, (("layers", 3),)) for size in (1, 2)),
)


@dataclass(frozen=True, slots=True)
class CostRow:
    """One contender at one sampling setting and length."""

    setting: SamplingSetting
    contender: Contender
    length: int
    texts: int
    rows: float
    tpr: Interval
    z: Interval
    median_log10_p: float


def measure_cost(
    run: Run,
    setting: SamplingSetting,
    contenders: Sequence[Contender],
    lengths: Sequence[int],
    texts: int,
    prompt_rows: PromptRows,
) -> list[CostRow]:
    """One row per contender and length, cheapest first."""
    rows = []
    for contender in contenders:
        cell = Cell(
            contender.scheme,
            contender.block_size,
            setting,
            max(lengths),
            parameters=contender.parameters,
            max_branches=contender.max_branches,
        )
        made = run.texts(cell, texts)
        cost = rows_per_token(run.stored(cell), prompt_rows)
        for length in lengths:
            found = detect_texts(run, cell, made, length)
            median_p = found.median_log10_p().estimate
            rows.append(
                CostRow(
                    setting, contender, length, texts, cost, found.rate(FPRS[-1]), found.mean_z(), median_p
                )
            )
    return sorted(rows, key=lambda row: (row.length, row.rows))


def cost_table(rows: Sequence[CostRow], notes: tuple[str, ...]) -> Table:
    """All contenders at one setting; a star marks those that nothing cheaper beats."""
    best = pareto(rows)
    return Table(
        f"Power against cost, {rows[0].setting}",
        (
            "",
            "tokens",
            "rows per token",
            "TPR at FPR 0.001 %",
            "median p",
            "mean z",
            "nothing cheaper is better",
        ),
        tuple(
            (
                row.contender.label,
                str(row.length),
                f"{row.rows:.2f}",
                row.tpr.percent(),
                power_of_ten(row.median_log10_p),
                str(row.z),
                "*" if row in best else "",
            )
            for row in rows
        ),
        (
            f"{rows[0].texts} texts per row; rows of forward passes per generated token, without the"
            " prompt's; better means a lower median p.",
            *notes,
        ),
    )


def pareto(rows: Sequence[CostRow]) -> list[CostRow]:
    """Rows of one setting for which none of the same length is as cheap and has a lower median p."""
    return [
        row
        for row in rows
        if not any(
            other.length == row.length
            and other.rows <= row.rows
            and other.median_log10_p < row.median_log10_p
            for other in rows
        )
    ]


def cost_figure(rows: Sequence[CostRow]) -> Figure:
    """One panel per setting and length, one set of points per scheme."""
    panels = []
    for setting, length in dict.fromkeys((row.setting, row.length) for row in rows):
        series = []
        for scheme in dict.fromkeys(row.contender.scheme for row in rows):
            kept = [
                row
                for row in rows
                if (row.setting, row.length, row.contender.scheme) == (setting, length, scheme)
            ]
            series.append(
                Series(
                    SCHEME_NAMES[scheme],
                    tuple(row.rows for row in kept),
                    tuple(row.z for row in kept),
                    names=tuple(row.contender.label.partition(" ")[2] for row in kept),
                )
            )
        panels.append(
            Panel(
                f"T {setting.temperature:g}, {length} tokens",
                "rows of forward passes per token",
                "mean z",
                tuple(series),
                "scatter",
            )
        )
    return Figure("cost", "Detection power against cost", tuple(panels))
