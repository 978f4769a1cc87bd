"""`cost`: detection power against what the rows of a forward pass buy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.cells import Cell, SamplingSetting, Setting
from ttmark.evaluation.experiments.direct import DirectRow, measure_direct
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import SCHEMES, Lengths, Schemes, Settings, TextsInTurn, in_turn
from ttmark.evaluation.report.figure import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups, power_of_ten, table_by
from ttmark.shared.watermark.schemes.registry import scheme_title


def contenders(setting: SamplingSetting, tokens: int) -> list[Cell]:
    """Ways to watermark that a deployment may choose between."""
    cell = partial(Cell, setting=setting, tokens=tokens)
    return [
        *(
            cell(scheme, 2, max_branches=branches)
            for scheme in ("synthid", "gumbel")
            for branches in (4, 8, 16)
        ),
        *(cell(scheme, size) for scheme in ("synthid", "mcmark", "gumbel") for size in (1, 2)),
        *(cell(scheme, 3, max_branches=8) for scheme in ("synthid", "gumbel")),
        *(cell("synthid", size, parameters=(("depth", 20),)) for size in (1, 2)),
        *(cell("mcmark", size, parameters=(("layers", 3),)) for size in (1, 2)),
    ]


def parameter_grid(setting: SamplingSetting, tokens: int) -> list[Cell]:
    """Pairs with depth, weights and blend; layers, alpha and blend; layers, channels and blend; blend."""
    blends = (1.0, 0.75, 0.5)
    grids: Mapping[str, Mapping[str, Sequence[float]]] = {
        "synthid": {"depth": (10, 15, 20, 25, 30, 40, 60), "weighted": (False, True), "blend": blends},
        "dipmark": {"layers": (1, 3, 5, 8, 12), "alpha": (0.3, 0.5), "blend": blends},
        "mcmark": {"layers": (1, 2, 3, 5, 8), "channels": (5, 10, 20, 50, 100), "blend": blends},
        "gumbel": {"blend": blends},
    }
    return [
        Cell(scheme, 2, setting, tokens, parameters=tuple(zip(values, chosen, strict=True)))
        for scheme, values in grids.items()
        for chosen in product(*values.values())
    ]


@dataclass(frozen=True, slots=True)
class Cost:
    """Detection power against rows of forward passes, by scheme, block size, branch budget and layers."""

    name: ClassVar[str] = "cost"
    title: ClassVar[str] = "Power against cost"

    settings: Settings = (Setting.ISO,)
    lengths: Lengths = (100, 200)
    texts: TextsInTurn = (200,)
    schemes: Schemes = SCHEMES
    every_parameter: Annotated[
        bool, typer.Option("--every-parameter", help="Pairs with every value of the schemes' parameters.")
    ] = False

    def measure(self, lab: Lab) -> None:
        kinds = parameter_grid if self.every_parameter else contenders
        tables, data = [], []
        for number, name in enumerate(self.settings):
            setting, count, tokens = lab.setting(name), in_turn(self.texts, number), max(self.lengths)
            cells = {cell: count for cell in kinds(setting, tokens) if cell.scheme in self.schemes}
            if not cells:
                raise ValueError(f"no contender has a scheme of {', '.join(self.schemes)}")
            rows = measure_direct(lab.run, cells, self.lengths, lab.prompt_rows, null_keys=0)
            rows.sort(key=lambda row: (row.length, row.rows))  # the cheapest first
            tables.append(cost_table(rows, lab.entropy_note(setting, tokens, count)))
            data += rows
        lab.finish(self.name, tables, data, [cost_figure(data)])


def label(row: DirectRow) -> str:
    """What tells a contender from others of its scheme, short, for a point in a plot."""
    parts = [f"r={row.block_size}"]
    if row.max_branches:
        parts.append(f"b={row.max_branches}")
    return " ".join([*parts, *(f"{name}={value:g}" for name, value in row.parameters)])


def cost_table(rows: Sequence[DirectRow], *notes: str) -> Table:
    """All contenders at one setting; a star marks those that nothing cheaper beats."""
    best = pareto(rows)
    return table_by(
        f"Power against cost, {rows[0].setting}",
        rows,
        {
            "": lambda row: f"{scheme_title(row.scheme)} {label(row)}",
            "tokens": lambda row: row.length,
            "rows per token": lambda row: f"{row.rows:.2f}",
            "TPR at FPR 1e-5": lambda row: row.tpr[-1].percent(),
            "median p": lambda row: power_of_ten(row.median_log10_p.estimate),
            "mean z": lambda row: row.z,
            "nothing cheaper has a lower p": lambda row: "*" if row in best else None,
        },
        (
            f"{rows[0].texts} texts per row; rows of forward passes per generated token, without the"
            " prompt's. Differences of few texts are chance as well as cost.",
            *notes,
        ),
    )


def pareto(rows: Sequence[DirectRow]) -> list[DirectRow]:
    """Rows of one setting for which none of the same length is as cheap and has a lower median p."""
    return [
        row
        for row in rows
        if not any(
            other.length == row.length
            and other.rows <= row.rows
            and other.median_log10_p.estimate < row.median_log10_p.estimate
            for other in rows
        )
    ]


def cost_figure(rows: Sequence[DirectRow]) -> Figure:
    """One panel per setting and length, one set of points per scheme."""
    panels = []
    for (setting, length), kept in groups(rows, lambda row: (row.setting, row.length)).items():
        series = tuple(
            line(
                scheme_title(scheme),
                of,
                lambda row: row.rows,
                lambda row: row.z,
                name=label,
            )
            for scheme, of in groups(kept, lambda row: row.scheme).items()
        )
        title = f"T {setting.temperature:g}, {length} tokens"
        panels.append(Panel(title, "rows of forward passes per token", "mean z", series, "scatter"))
    return Figure("cost", "Detection power against cost", tuple(panels))
