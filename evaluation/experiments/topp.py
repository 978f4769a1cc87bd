"""`topp`: direct detection against top-p (paper, Figure 3)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Setting
from ttmark.evaluation.experiments.direct import DirectRow, grid, measure_direct
from ttmark.evaluation.options import PAPER_SCHEMES, BlockSizes, Length, OneSetting, Schemes, Texts
from ttmark.evaluation.paper import row_name
from ttmark.evaluation.report.plot_data import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups
from ttmark.shared.watermark.schemes.registry import scheme_title

TOP_P = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)


@dataclass(frozen=True, slots=True)
class TopP:
    """Detection against top-p (the paper's Figure 3)."""

    name: ClassVar[str] = "topp"
    title: ClassVar[str] = "Top-p"

    setting: OneSetting = Setting.ISO
    schemes: Schemes = PAPER_SCHEMES
    block_sizes: BlockSizes = (1, 2)
    length: Length = 200
    texts: Texts = 100
    top_p: Annotated[tuple[float, ...], typer.Option(help="May be repeated.")] = TOP_P

    def measure(self, lab: Lab) -> None:
        setting, counts = lab.setting(self.setting), dict.fromkeys(self.block_sizes, self.texts)
        rows: list[DirectRow] = []
        for top_p in self.top_p:
            cells = grid(self.schemes, counts, replace(setting, top_p=top_p), self.length)
            rows += measure_direct(lab.run, cells, (self.length,), lab.prompt_rows)
        lab.finish(self.name, [topp_table(rows)], rows, [topp_figure(rows)])


def topp_table(rows: Sequence[DirectRow]) -> Table:
    """TPR at FPR 1e-3 by scheme, block size and top-p."""
    first = rows[0]
    values = sorted({row.setting.top_p for row in rows})
    cells = {(row.scheme, row.block_size, row.setting.top_p): row.tpr[0].percent() for row in rows}
    kinds = groups(rows, lambda row: (row.scheme, row.block_size))
    return Table(
        f"TPR at FPR 1e-3 by top-p; top-k {first.setting.top_k}, T {first.setting.temperature:g},"
        f" {first.length} tokens",
        ("", *(f"top-p {value:g}" for value in values)),
        tuple((row_name(*kind), *(cells[*kind, value] for value in values)) for kind in kinds),
        (f"{first.texts} texts per cell; 95 % intervals.",),
    )


def topp_figure(rows: Sequence[DirectRow]) -> Figure:
    """One panel per scheme, single tokens dashed."""
    panels = []
    for scheme, kept in groups(rows, lambda row: row.scheme).items():
        series = [
            line(f"r = {size}", of, lambda row: row.setting.top_p, lambda row: row.tpr[0], dashed=size == 1)
            for size, of in sorted(groups(kept, lambda row: row.block_size).items())
        ]
        panels.append(Panel(scheme_title(scheme), "top-p", "TPR at FPR 1e-3", tuple(series)))
    return Figure("topp", "Effect of top-p", tuple(panels))
