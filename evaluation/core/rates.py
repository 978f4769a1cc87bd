"""False-positive counts at promised levels: pooled for readers, row by row for who wants to check."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from evaluation.core.markdown import clopper_pearson, table


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
            clopper_pearson(hits, self.trials)[0] / level
            for hits, level in zip(self.hits, levels, strict=True)
        )


def pooled_table(counts: Sequence[Count], levels: Sequence[float], *, by_text: bool = False) -> str:
    """Rates by detector and block size, or by detector and text, and the worst row behind each.

    The last columns count the (row, level) cells whose lower 99 % bound is above the promise, and name
    the row that comes nearest to that.
    """
    groups: dict[tuple[str, int | str], list[Count]] = defaultdict(list)
    for count in counts:
        groups[count.detector, count.text if by_text else count.block_size].append(count)
    rows = []
    for (detector, group), members in groups.items():
        trials = sum(count.trials for count in members)
        rates = [
            rate_cell(sum(count.hits[i] for count in members), trials, level)
            for i, level in enumerate(levels)
        ]
        above = sum(
            clopper_pearson(hits, count.trials)[0] > level
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
    return table(header, rows)


def rate_cell(hits: int, trials: int, level: float) -> str:
    """Measured rate, and a mark where even its lower 99 % bound exceeds the promise."""
    low, _ = clopper_pearson(hits, trials)
    return f"{hits / trials:.2e}" + (" **above**" if low > level else "")


def write_rows(counts: Sequence[Count], levels: Sequence[float], path: Path) -> None:
    """All rows as JSON, one to a line."""
    lines = ",\n  ".join(json.dumps(asdict(count)) for count in counts)
    path.write_text(f'{{"levels": {json.dumps(list(levels))}, "rows": [\n  {lines}\n]}}\n', encoding="utf-8")
