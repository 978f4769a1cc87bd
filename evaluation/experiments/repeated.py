"""Repeated queries: how alike many completions of one prompt under one key are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evaluation.cells import Cell
from evaluation.completions import Completion
from evaluation.intervals import Interval, mean
from evaluation.paper import SCHEME_NAMES
from evaluation.report.table import Table
from evaluation.run import Run
from evaluation.settings import SamplingSetting
from shared.watermark import Watermark


@dataclass(frozen=True, slots=True)
class RepeatedPlan:
    """What to measure: `prompts` prompts with `completions` texts each under one key.

    Attributes:
        context_widths: None stands for each scheme's default.
    """

    schemes: tuple[str, ...]
    block_sizes: tuple[int, ...]
    setting: SamplingSetting
    tokens: int
    prompts: int
    completions: int
    context_widths: tuple[int | None, ...] = (None,)

    @property
    def texts(self) -> int:
        """Of a cell."""
        return self.prompts * self.completions

    def cells(self) -> list[Cell]:
        """Unwatermarked text first."""
        plain = Cell(None, 1, self.setting, self.tokens, prompts=self.prompts)
        return [plain] + [
            self._cell(scheme, size, width)
            for scheme in self.schemes
            for size in self.block_sizes
            for width in self.context_widths
        ]

    def _cell(self, scheme: str, size: int, width: int | None) -> Cell:
        """A width that is the scheme's default names the same texts as none."""
        cell = Cell(scheme, size, self.setting, self.tokens, prompts=self.prompts, one_key=True)
        return cell if width in (None, cell.watermark().context_width) else replace(cell, context_width=width)


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


def measure_repeated(run: Run, plan: RepeatedPlan) -> list[RepeatedRow]:
    """The first row, half of the unwatermarked texts against the other half, is what chance alone gives."""
    cells = plan.cells()
    grids = {
        cell: _grid(run.texts(cell, plan.texts * (2 if cell.scheme is None else 1)), plan) for cell in cells
    }
    plain = grids[cells[0]]  # [prompts, 2 * completions, tokens]
    reference, other = plain[:, : plan.completions], plain[:, plan.completions :]
    rows = [_row(cells[0], other, reference)]
    return rows + [_row(cell, grids[cell], reference) for cell in cells[1:]]


def _grid(texts: Sequence[Completion], plan: RepeatedPlan) -> NDArray[np.int64]:
    """Tokens, [prompts, completions, tokens]; text i continues prompt i mod prompts."""
    tokens = np.stack([text.tokens() for text in texts])
    return tokens.reshape(-1, plan.prompts, plan.tokens).transpose(1, 0, 2)


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


def repeated_table(rows: Sequence[RepeatedRow], plan: RepeatedPlan, notes: tuple[str, ...]) -> Table:
    """All rows."""
    return Table(
        f"Repeated queries: {plan.prompts} prompts x {plan.completions} completions of {plan.tokens} tokens"
        f" under one key, {plan.setting}",
        (
            "",
            "r",
            "H",
            "warm-up tokens",
            "distinct completions",
            "token agreement of two completions",
            "distance to the model",
        ),
        tuple(
            (
                SCHEME_NAMES[row.scheme] if row.scheme else "no watermark",
                str(row.block_size) if row.scheme else "",
                str(row.context_width) if row.context_width is not None else "",
                str(_warmup_tokens(row)) if row.scheme else "",
                row.distinct.percent(),
                str(row.collision),
                str(row.distance),
            )
            for row in rows
        ),
        (
            "Means over prompts with 95 % intervals. Distance: total variation per position to as many"
            " completions without a watermark; the first row is the distance between two such groups.",
            *notes,
        ),
    )
