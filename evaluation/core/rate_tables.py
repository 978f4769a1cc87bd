"""False-positive counts at promised levels: pooled for readers, row by row for who wants to check."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ttmark.evaluation.intervals import clopper_pearson
from ttmark.evaluation.report.result import Table, groups, table_of


@dataclass(frozen=True)
class Count:
    """How many of `trials` unwatermarked texts had a p-value of at most each level."""

    scheme: str
    block_size: int
    detector: str
    text: str
    """What the texts are: their length in tokens, or their kind."""
    trials: int
    hits: list[int]

    def excess(self, levels: Sequence[float]) -> float:
        """The largest lower 99 % Clopper-Pearson bound of a rate over its level; above 1 breaks a promise."""
        return max(
            lower_bound(hits, self.trials) / level for hits, level in zip(self.hits, levels, strict=True)
        )


def pooled_table(counts: Sequence[Count], levels: Sequence[float], *, by_text: bool = False) -> Table:
    """Rates by detector and block size, or by detector and text, and the worst row behind each.

    The last columns count the (row, level) cells whose lower 99 % bound is above the promise, and name
    the row that comes nearest to that.
    """
    kinds = groups(counts, lambda count: (count.detector, count.text if by_text else count.block_size))
    rows = []
    for (detector, group), members in kinds.items():
        trials = sum(count.trials for count in members)
        rates = [
            rate_cell(sum(count.hits[i] for count in members), trials, level)
            for i, level in enumerate(levels)
        ]
        above = sum(
            lower_bound(hits, count.trials) > level
            for count in members
            for hits, level in zip(count.hits, levels, strict=True)
        )
        worst = max(members, key=lambda count: count.excess(levels))
        cells = f"{above} of {len(members) * len(levels)}"
        label = f"{worst.scheme}, {worst.text}: {worst.excess(levels):.2f}"
        rows.append([detector, group, f"{trials:,}", *rates, cells, label])
    header = [
        "detector",
        "text" if by_text else "r",
        "trials",
        *[f"at {level:g}" for level in levels],
        "cells above promise",
        "worst row: lower 99 % bound / promise",
    ]
    return table_of("False positives", header, rows)


def lower_bound(hits: int, trials: int) -> float:
    """The lower 99 % Clopper-Pearson bound of a rate."""
    return clopper_pearson(hits, trials, 0.99).low


def rate_cell(hits: int, trials: int, level: float) -> str:
    """Measured rate, and a mark where even its lower 99 % bound exceeds the promise."""
    return f"{hits / trials:.2e}" + (" **above**" if lower_bound(hits, trials) > level else "")


def write_rows(counts: Sequence[Count], levels: Sequence[float], path: Path) -> None:
    """All rows as JSON, one to a line."""
    lines = ",\n  ".join(json.dumps(asdict(count)) for count in counts)
    path.write_text(f'{{"levels": {json.dumps(list(levels))}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
