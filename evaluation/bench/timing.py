"""Processor time of several systems on the same work, in turns, and their speeds beside the first's."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ttmark.evaluation.report.result import Table


@dataclass(frozen=True, slots=True)
class Timing:
    """One system.

    Attributes:
        per_cpu_second: units of work in a second of processor time, the best of several runs.
        share: of the first system's speed.
    """

    name: str
    per_cpu_second: float
    share: float


def time_in_turns(systems: Mapping[str, Callable[[], object]], units: int, repeats: int) -> list[Timing]:
    """Runs every system `repeats` times, turn by turn, so that whatever slows the machine slows all.

    Args:
        systems: the first is what the others are compared with.
        units: of work that a run does.
    """
    best = dict.fromkeys(systems, float("inf"))
    for _ in range(repeats):
        for name, work in systems.items():
            started = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - started)
    first = next(iter(best.values()))
    return [Timing(name, units / seconds, first / seconds) for name, seconds in best.items()]


def timing_table(title: str, unit: str, timings: list[Timing], notes: tuple[str, ...]) -> Table:
    """Ratios first."""
    columns = ("", f"of {timings[0].name}", f"{unit} per CPU second")
    rows = tuple((item.name, f"{item.share:.2f}", f"{item.per_cpu_second:,.0f}") for item in timings)
    return Table(title, columns, rows, notes)
