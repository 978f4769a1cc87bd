"""What a pass costs by its number of rows, measured at start, and the branch budget that follows from it."""

import time
from collections.abc import Callable
from dataclasses import dataclass

_FEWEST_BRANCHES = 4
_SLACK = 2.0
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds of a pass for rising numbers of rows."""

    rows: tuple[int, ...]
    seconds: tuple[float, ...]

    @classmethod
    def measure(
        cls,
        run: Callable[[int], object],
        most_rows: int,
        clock: Callable[[], float] = time.perf_counter,
    ) -> "CostCurve":
        """Times `run(rows)` for powers of two up to `most_rows`; the fastest of three runs counts."""
        rows = tuple(1 << power for power in range(most_rows.bit_length()))
        return cls(rows, tuple(min(_timed(run, n, clock) for _ in range(_REPEATS)) for n in rows))

    @property
    def knee(self) -> int:
        """The most rows whose pass costs at most twice that of one row."""
        limit = _SLACK * self.seconds[0]
        return next(
            (
                rows
                for rows, cost in zip(reversed(self.rows), reversed(self.seconds), strict=True)
                if cost <= limit
            ),
            self.rows[0],
        )

    def branch_budget(self, sequences: int) -> int:
        """Branches per block that keep a pass over `sequences` below the knee, at least a few."""
        return max(_FEWEST_BRANCHES, self.knee // max(sequences, 1))


def _timed(run: Callable[[int], object], rows: int, clock: Callable[[], float]) -> float:
    started = clock()
    run(rows)
    return clock() - started
