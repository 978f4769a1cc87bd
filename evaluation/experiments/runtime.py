"""`runtime`: time against the number of candidates (paper, Figure 4)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import typer

from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Cell, SamplingSetting
from ttmark.evaluation.intervals import Interval
from ttmark.evaluation.options import PAPER_SCHEMES, BlockSizes, Length, Schemes, Texts
from ttmark.evaluation.report.plot_data import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups
from ttmark.evaluation.run_folder import TextSource
from ttmark.shared.watermark.schemes.registry import scheme_title

CANDIDATES = (1, 2, 4, 8, 16, 32, 50)


@dataclass(frozen=True, slots=True)
class Runtime:
    """Time against the number of candidates (the paper's Figure 4): exactly m at every step."""

    name: ClassVar[str] = "runtime"
    title: ClassVar[str] = "Time"

    schemes: Schemes = PAPER_SCHEMES
    block_sizes: BlockSizes = (1, 2)
    length: Length = 32
    texts: Texts = 32
    repeats: Annotated[int, typer.Option(min=1, help="Batches of each kind.")] = 3
    candidates: Annotated[tuple[int, ...], typer.Option(min=1, help="m; may be repeated.")] = CANDIDATES

    def measure(self, lab: Lab) -> None:
        rows = measure_runtime(lab.source, self, lab.run.seed)
        lab.finish(self.name, [runtime_table(rows, self)], rows, [runtime_figure(rows)])


@dataclass(frozen=True, slots=True)
class RuntimeRow:
    """Median seconds per 1,000 tokens with the range of the repeats; scheme None is unwatermarked."""

    scheme: str | None
    block_size: int
    candidates: int
    seconds: Interval


def measure_runtime(source: TextSource, plan: Runtime, seed: int) -> list[RuntimeRow]:
    """One row per scheme, block size and m; repeats go round all of them, so that drift hits each alike."""
    kinds = [(None, 1), *((scheme, size) for scheme in plan.schemes for size in plan.block_sizes)]
    cells = [
        Cell(scheme, size, SamplingSetting(m, 1.0, 1.0), plan.length)
        for m in plan.candidates
        for scheme, size in kinds
    ]
    source.generate(cells[0], range(1), seed, lambda _: None)
    seconds: dict[Cell, list[float]] = {cell: [] for cell in cells}
    for _ in range(plan.repeats):
        for cell in cells:
            started = time.perf_counter()
            source.generate(cell, range(plan.texts), seed, lambda _: None)
            elapsed = time.perf_counter() - started
            seconds[cell].append(1000 * elapsed / (plan.texts * plan.length))
    return [
        RuntimeRow(
            cell.scheme,
            cell.block_size,
            cell.setting.top_k,
            Interval(float(np.median(found)), min(found), max(found)),
        )
        for cell, found in seconds.items()
    ]


def runtime_table(rows: Sequence[RuntimeRow], plan: Runtime) -> Table:
    """Seconds per 1,000 tokens by scheme, block size and m."""
    kinds = groups(rows, lambda row: (row.scheme, row.block_size))
    return Table(
        f"Seconds per 1,000 tokens by number of candidates m, {plan.texts} texts at a time",
        ("", *(f"m = {m}" for m in plan.candidates)),
        tuple((_name(*kind), *(str(row.seconds) for row in of)) for kind, of in kinds.items()),
        (f"Median of {plan.repeats} runs of {plan.length} tokens of each text, brackets: their range.",),
    )


def runtime_figure(rows: Sequence[RuntimeRow]) -> Figure:
    """One panel per scheme: r = 1 dashed, blocks, and unwatermarked text."""
    panels = []
    for scheme in dict.fromkeys(row.scheme for row in rows if row.scheme):
        kinds = groups(
            [row for row in rows if row.scheme in (None, scheme)], lambda row: (row.scheme, row.block_size)
        )
        series = tuple(
            line(
                f"r = {size}" if marked else "no watermark",
                of,
                lambda row: row.candidates,
                lambda row: row.seconds,
                dashed=size == 1,
            )
            for (marked, size), of in kinds.items()
        )
        panels.append(Panel(scheme_title(scheme), "candidates m", "s per 1,000 tokens", series))
    return Figure("runtime", "Time against candidates", tuple(panels))


def _name(scheme: str | None, block_size: int) -> str:
    return f"{scheme_title(scheme)}, r = {block_size}" if scheme else "no watermark"
