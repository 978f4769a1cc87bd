"""Tables and plots of the comparison."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ttmark.evaluation.intervals import Interval
from ttmark.evaluation.peers.measure import FPRS, SHARES, Baseline, PeerRow, Power
from ttmark.evaluation.report.figure import Figure, Panel, Series, line
from ttmark.evaluation.report.result import Table, power_of_ten, rate_name, table_by, table_of

AT = 1e-3
"""The false positive rate of edits and plots, which every detector can state."""


def main_table(rows: Sequence[PeerRow], baselines: Sequence[Baseline], notes: Sequence[str]) -> Table:
    """All systems and detectors at the greatest length; then text without a watermark."""
    length = rows[0].tokens[-1]
    columns = [
        "system",
        "detector",
        "texts",
        *(f"TPR at {rate_name(fpr)}" for fpr in FPRS),
        "median p",
        *(f"{100 * share:.0f} % of words edited, TPR at {rate_name(AT)}" for share in SHARES),
        "distinct answers",
        "loss minus unmarked",
        "seconds",
    ]
    cells = [
        [
            row.system,
            row.detector,
            row.texts,
            *map(_percent, row.power[-1].tpr),
            _median(row.power[-1]),
            *(_percent(_at(power)) for power in row.edits),
            row.distinct.percent(),
            row.loss,
            _seconds(row.seconds),
        ]
        for row in rows
    ]
    empty = [""] * (len(FPRS) + 1 + len(SHARES))
    cells += [
        [row.system, "", "", *empty, _percent(row.distinct), "", _seconds(row.seconds)] for row in baselines
    ]
    made = table_of(f"Beside other systems, {length} tokens", columns, cells)
    return Table(made.title, made.columns, made.rows, tuple(notes))


def power_table(rows: Sequence[PeerRow]) -> Table:
    """Power by length, which a plot shows too."""
    cases = [(row, *case) for row in rows for case in zip(row.tokens, row.power, strict=True)]
    table = table_by(
        "Power by length",
        cases,
        {
            "system": lambda case: case[0].system,
            "detector": lambda case: case[0].detector,
            "tokens": lambda case: case[1],
            **{f"TPR at {rate_name(fpr)}": _rate(number) for number, fpr in enumerate(FPRS)},
            "median p": lambda case: _median(case[2]),
        },
    )
    return replace(table, aside=True)


def peers_figures(rows: Sequence[PeerRow]) -> list[Figure]:
    """Power by length; power against distinct answers."""
    power, tokens = f"TPR at {rate_name(AT)}", rows[0].tokens[-1]
    stated = [row for row in rows if None not in map(_at, row.power)]
    kinds = {
        name: [row for row in stated if row.system.startswith("ours") == own]
        for name, own in (("ours", True), ("others", False))
    }
    by_length = tuple(Panel(name, "tokens", power, tuple(map(_by_length, of))) for name, of in kinds.items())
    scatter = tuple(
        line(
            name,
            [row for row in of if row.detector.startswith("exact")],
            lambda row: 100 * row.distinct.estimate,
            lambda row: _known(row.power[-1]),
            name=_short,
        )
        for name, of in kinds.items()
    )
    axis = "distinct answers under one key, %"
    panel = Panel(f"{tokens} tokens, exact readers", axis, power, scatter, "scatter")
    return [
        Figure("peers-length", "Power by length", by_length),
        Figure("peers-diversity", "Power and distinct answers", (panel,)),
    ]


def _by_length(row: PeerRow) -> Series:
    label = _short(row)
    if row.detector != "exact":
        label += f", {row.detector.removeprefix('exact, ')}"
    points = zip(row.tokens, row.power, strict=True)
    return line(label, points, lambda point: point[0], lambda point: _known(point[1]))


def _short(row: PeerRow) -> str:
    return row.system.removeprefix("ours: ").removeprefix("transformers ")


def _at(power: Power) -> Interval | None:
    return power.tpr[FPRS.index(AT)]


def _known(power: Power) -> Interval:
    """The rate at `AT`; ValueError where the detector cannot state it."""
    rate = _at(power)
    if rate is None:
        raise ValueError(f"no rate at {rate_name(AT)}")
    return rate


def _rate(number: int) -> Callable[[tuple[PeerRow, int, Power]], str]:
    return lambda case: _percent(case[2].tpr[number])


def _percent(rate: Interval | None) -> str:
    return rate.percent() if rate else "-"


def _median(power: Power) -> str:
    return power_of_ten(power.median_log10_p.estimate) if power.median_log10_p else "-"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.1f}"
