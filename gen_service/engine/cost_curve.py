"""What passes cost, measured at start on the model itself.

The branch budget follows from it, and the choice of number format and CPU threads.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise, product

import torch

from ttmark.gen_service.engine.runner import Runner

_FEWEST_BRANCHES = 4
_SLACK = 2.0
_REPEATS = 3
_COMPARED_ROWS = (4, 64)  # of a pass in ordinary decoding, and of one with probes


@dataclass(frozen=True, slots=True)
class CostCurve:
    """Seconds of a pass for rising numbers of rows."""

    rows: tuple[int, ...]
    seconds: tuple[float, ...]

    @classmethod
    def measure(cls, run: Callable[[int], object], most_rows: int) -> "CostCurve":
        """Times `run(rows)` for powers of two up to `most_rows`; the fastest of three runs counts.

        It ends where a pass costs more than twice that of one row.
        """
        seconds: list[float] = []
        rows = tuple(1 << power for power in range(most_rows.bit_length()))
        for count in rows:
            seconds.append(seconds_of(run, count))
            if seconds[-1] > _SLACK * seconds[0]:
                break
        return cls(rows[: len(seconds)], tuple(seconds))

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


def seconds_of(run: Callable[[int], object], rows: int) -> float:
    """The fastest of three times that `run(rows)` takes."""
    times = [time.perf_counter()]
    for _ in range(_REPEATS):
        run(rows)
        times.append(time.perf_counter())
    return min(after - before for before, after in pairwise(times))


def fastest(runners: Iterable[Runner], threads: Iterable[int]) -> Runner:
    """The runner that is fastest with any of the numbers of threads; torch is left at that number.

    What counts is the fastest of three passes of each measured size.
    """
    choices = list(product(runners, threads))
    runner, count = choices[0] if len(choices) == 1 else min(choices, key=lambda choice: _seconds(*choice))
    torch.set_num_threads(count)
    return runner


def _seconds(runner: Runner, threads: int) -> float:
    torch.set_num_threads(threads)
    return sum(seconds_of(runner.probe_once, rows) for rows in _COMPARED_ROWS)
