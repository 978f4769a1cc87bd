"""Time against the number of candidates (paper, Figure 4)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.cells import Cell
from evaluation.intervals import Interval
from evaluation.paper import SCHEME_NAMES
from evaluation.report.figure import Figure, Panel, Series
from evaluation.report.table import Table
from evaluation.settings import SamplingSetting
from evaluation.sources import TextSource

CANDIDATES = (1, 2, 4, 8, 16, 32, 50)


@dataclass(frozen=True, slots=True)
class RuntimePlan:
    """What to measure: `repeats` batches of texts with exactly m candidates at every step."""

    schemes: tuple[str, ...]
    block_sizes: tuple[int, ...]
    batch: int
    tokens: int
    repeats: int
    candidates: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RuntimeRow:
    """Median seconds per 1,000 tokens with the range of the repeats; scheme None is unwatermarked."""

    scheme: str | None
    block_size: int
    candidates: int
    seconds: Interval


def measure_runtime(source: TextSource, plan: RuntimePlan, seed: int) -> list[RuntimeRow]:
    """One row per scheme, block size and m; repeats go round all of them, so that drift hits each alike."""
    kinds = [(None, 1), *((scheme, size) for scheme in plan.schemes for size in plan.block_sizes)]
    cells = [
        Cell(scheme, size, SamplingSetting(m, 1.0, 1.0), plan.tokens)
        for m in plan.candidates
        for scheme, size in kinds
    ]
    source.generate(cells[0], range(1), seed, lambda _: None)
    seconds: dict[Cell, list[float]] = {cell: [] for cell in cells}
    for _ in range(plan.repeats):
        for cell in cells:
            started = time.perf_counter()
            source.generate(cell, range(plan.batch), seed, lambda _: None)
            elapsed = time.perf_counter() - started
            seconds[cell].append(1000 * elapsed / (plan.batch * plan.tokens))
    return [
        RuntimeRow(
            cell.scheme,
            cell.block_size,
            cell.setting.top_k,
            Interval(float(np.median(found)), min(found), max(found)),
        )
        for cell, found in seconds.items()
    ]


def runtime_table(rows: Sequence[RuntimeRow], plan: RuntimePlan, notes: tuple[str, ...]) -> Table:
    """Seconds per 1,000 tokens by scheme, block size and m."""
    by_kind = {(row.scheme, row.block_size, row.candidates): row.seconds for row in rows}
    kinds = list(dict.fromkeys((row.scheme, row.block_size) for row in rows))
    return Table(
        f"Seconds per 1,000 tokens by number of candidates m, batch {plan.batch}",
        ("", *(f"m = {m}" for m in plan.candidates)),
        tuple(
            (_name(scheme, size), *(str(by_kind[scheme, size, m]) for m in plan.candidates))
            for scheme, size in kinds
        ),
        (f"Median of {plan.repeats} batches of {plan.tokens} tokens, brackets: their range.", *notes),
    )


def runtime_figure(rows: Sequence[RuntimeRow]) -> Figure:
    """One panel per scheme: r = 1 dashed, blocks, and unwatermarked text."""
    panels = []
    for scheme in dict.fromkeys(row.scheme for row in rows if row.scheme):
        kinds = dict.fromkeys((row.scheme, row.block_size) for row in rows if row.scheme in (None, scheme))
        series = []
        for kind in kinds:
            kept = [row for row in rows if (row.scheme, row.block_size) == kind]
            points = tuple(float(row.candidates) for row in kept)
            label = f"r = {kind[1]}" if kind[0] else "no watermark"
            times = tuple(row.seconds for row in kept)
            series.append(Series(label, points, times, dashed=kind[1] == 1))
        panels.append(Panel(SCHEME_NAMES[scheme], "candidates m", "s per 1,000 tokens", tuple(series)))
    return Figure("runtime", "Time against candidates", tuple(panels))


def _name(scheme: str | None, block_size: int) -> str:
    return f"{SCHEME_NAMES[scheme]}, r = {block_size}" if scheme else "no watermark"
