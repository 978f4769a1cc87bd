"""`repeated`, `widths`: how alike many completions of one prompt under one key are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, SamplingSetting, Setting
from ttmark.evaluation.intervals import Interval, mean
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import SCHEMES, BlockSizes, Length, OneSetting, Schemes
from ttmark.evaluation.report.result import Table, table_by
from ttmark.evaluation.run import Completion, Run
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.schemes.registry import scheme_title

Completions = Annotated[int, typer.Option(min=2, help="Per prompt.")]
ContextWidths = Annotated[
    tuple[int, ...],
    typer.Option(
        "--context-width",
        min=1,
        help="Tokens before a block that key it; may be repeated; none: the scheme's.",
    ),
]


@dataclass(frozen=True, slots=True)
class Repeated:
    """Many completions of the same prompts under one key: how alike are they?"""

    name: ClassVar[str] = "repeated"
    title: ClassVar[str] = "Repeated queries"

    setting: OneSetting = Setting.ISO
    schemes: Schemes = SCHEMES
    block_sizes: BlockSizes = (1, 2)
    length: Length = 24
    prompt_count: Annotated[int, typer.Option(min=1, help="Different prompts.")] = 10
    completions: Completions = 1_000
    context_widths: ContextWidths = ()

    def measure(self, lab: Lab) -> None:
        setting = lab.setting(self.setting)
        rows = measure_repeated(lab.run, self, setting)
        lab.finish(self.name, [repeated_table(rows, self, setting)], rows)

    def cells(self, setting: SamplingSetting) -> list[Cell]:
        """Unwatermarked text first."""
        plain = Cell(None, 1, setting, self.length, prompts=self.prompt_count)
        return [plain] + [
            self._cell(replace(plain, scheme=scheme, block_size=size, pool=1), width)
            for scheme in self.schemes
            for size in self.block_sizes
            for width in self.context_widths or (None,)
        ]

    @staticmethod
    def _cell(cell: Cell, width: int | None) -> Cell:
        """A width that is the scheme's default names the same texts as none."""
        return cell if width in (None, cell.watermark().context_width) else replace(cell, context_width=width)


@dataclass(frozen=True, slots=True)
class Widths(Repeated):
    """The same with other context widths, and so longer or shorter warm-ups."""

    name: ClassVar[str] = "widths"
    title: ClassVar[str] = "Repeated queries by context width"

    schemes: Schemes = ("synthid", "gumbel")
    completions: Completions = 250
    context_widths: ContextWidths = (2, 4, 8)


@dataclass(frozen=True, slots=True)
class RepeatedRow:
    """Means over prompts.

    Attributes:
        distinct: share of completions that differ from every other of their prompt.
        collision: chance that two completions of a prompt agree on a token at the same place; without a
            watermark that is what the model's own sharpness gives.
        distance: total variation, per position, between the tokens of these completions and those of
            completions without a watermark, as many of each.
    """

    scheme: str | None
    block_size: int
    context_width: int | None
    distinct: Interval
    collision: Interval
    distance: Interval


def measure_repeated(run: Run, plan: Repeated, setting: SamplingSetting) -> list[RepeatedRow]:
    """The first row, half of the unwatermarked texts against the other half, is what chance alone gives."""
    count = plan.prompt_count * plan.completions
    plain, *cells = plan.cells(setting)
    halves = _grid(run.texts(plain, 2 * count), plan)  # [prompts, 2 * completions, tokens]
    reference, other = halves[:, : plan.completions], halves[:, plan.completions :]
    rows = [_row(plain, other, reference)]
    return rows + [_row(cell, _grid(run.texts(cell, count), plan), reference) for cell in cells]


def _grid(texts: Sequence[Completion], plan: Repeated) -> NDArray[np.int64]:
    """Tokens, [prompts, completions, tokens]; text i continues prompt i mod prompts."""
    tokens = np.stack([text.tokens() for text in texts])
    return tokens.reshape(-1, plan.prompt_count, plan.length).transpose(1, 0, 2)


def _row(cell: Cell, grid: NDArray[np.int64], reference: NDArray[np.int64]) -> RepeatedRow:
    prompts = range(len(grid))
    return RepeatedRow(
        cell.scheme,
        cell.block_size,
        cell.watermark().context_width if cell.scheme else None,
        mean(np.array([distinct_share(grid[prompt]) for prompt in prompts])),
        mean(np.array([collision_rate(grid[prompt]) for prompt in prompts])),
        mean(np.array([positional_distance(grid[prompt], reference[prompt]) for prompt in prompts])),
    )


def distinct_share(texts: NDArray[np.int64]) -> float:
    """Number of different rows over the number of rows; texts [completions, tokens]."""
    return len(np.unique(texts, axis=0)) / len(texts)


def collision_rate(texts: NDArray[np.int64]) -> float:
    """Chance that two different rows agree in a column, mean over columns."""
    count = len(texts)
    rates = []
    for column in texts.T:
        _, times = np.unique(column, return_counts=True)
        rates.append((times * (times - 1)).sum() / (count * (count - 1)))
    return float(np.mean(rates))


def positional_distance(first: NDArray[np.int64], second: NDArray[np.int64]) -> float:
    """Total variation distance between the columns of two groups of texts, mean over columns."""
    size = int(max(first.max(), second.max())) + 1
    distances = [
        np.abs(np.bincount(a, minlength=size) / len(a) - np.bincount(b, minlength=size) / len(b)).sum() / 2
        for a, b in zip(first.T, second.T, strict=True)
    ]
    return float(np.mean(distances))


def _warmup_tokens(row: RepeatedRow) -> int:
    """Tokens at the start of a completion that carry no watermark."""
    return row.block_size * Watermark(str(row.scheme), row.block_size, row.context_width).warmup_blocks


def repeated_table(rows: Sequence[RepeatedRow], plan: Repeated, setting: SamplingSetting) -> Table:
    """All rows."""
    return table_by(
        f"Repeated queries: {plan.prompt_count} prompts x {plan.completions} completions of {plan.length}"
        f" tokens under one key, {setting}",
        rows,
        {
            "": lambda row: scheme_title(row.scheme) if row.scheme else "no watermark",
            "r": lambda row: row.block_size if row.scheme else None,
            "H": lambda row: row.context_width,
            "warm-up tokens": lambda row: _warmup_tokens(row) if row.scheme else None,
            "distinct completions": lambda row: row.distinct.percent(),
            "token agreement of two completions": lambda row: row.collision,
            "distance to the model": lambda row: row.distance,
        },
        (
            "Means over prompts with 95 % intervals. Distance: total variation per position to as many"
            " completions without a watermark; the first row is the distance between two such groups.",
        ),
    )
