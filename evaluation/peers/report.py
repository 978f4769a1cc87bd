"""Tables and plots of the comparison."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from ttmark.evaluation.intervals import Interval
from ttmark.evaluation.peers.measure import FPRS, SHARES, Baseline, PeerRow, Power
from ttmark.evaluation.report.plot_data import Figure, Panel, Series, line
from ttmark.evaluation.report.result import Table, power_of_ten, rate_name, table_by, table_of

AT = 1e-3
"""The false positive rate of edits and plots."""


def main_table(rows: Sequence[PeerRow], baseline: Baseline, notes: Sequence[str]) -> Table:
    """All systems at the greatest length; then text without a watermark."""
    length = rows[0].tokens[-1]
    columns = [
        "system",
        "texts",
        *(f"TPR at {rate_name(fpr)}" for fpr in FPRS),
        "median p",
        *(f"{100 * share:.0f} % of words edited, TPR at {rate_name(AT)}" for share in SHARES),
        "distinct answers",
        "loss minus unmarked",
    ]
    cells = [
        [
            row.system,
            row.texts,
            *(rate.percent() for rate in row.power[-1].tpr),
            _median(row.power[-1]),
            *(_at(power).percent() for power in row.edits),
            row.distinct.percent(),
            row.loss,
        ]
        for row in rows
    ]
    empty = [""] * (len(FPRS) + 1 + len(SHARES))
    cells.append([baseline.system, "", *empty, baseline.distinct.percent(), ""])
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
            "tokens": lambda case: case[1],
            **{f"TPR at {rate_name(fpr)}": _rate(number) for number, fpr in enumerate(FPRS)},
            "median p": lambda case: _median(case[2]),
        },
    )
    return replace(table, aside=True)


def peers_figures(rows: Sequence[PeerRow]) -> list[Figure]:
    """Power by length; power against distinct answers."""
    power, tokens = f"TPR at {rate_name(AT)}", rows[0].tokens[-1]
    kinds = {
        name: [row for row in rows if row.system.startswith("ours") == own]
        for name, own in (("ours", True), ("others", False))
    }
    by_length = tuple(Panel(name, "tokens", power, tuple(map(_by_length, of))) for name, of in kinds.items())
    scatter = tuple(
        line(
            name,
            of,
            lambda row: 100 * row.distinct.estimate,
            lambda row: _at(row.power[-1]),
            name=_short,
        )
        for name, of in kinds.items()
    )
    axis = "distinct answers under one key, %"
    panel = Panel(f"{tokens} tokens", axis, power, scatter, "scatter")
    return [
        Figure("peers-length", "Power by length", by_length),
        Figure("peers-diversity", "Power and distinct answers", (panel,)),
    ]


def _by_length(row: PeerRow) -> Series:
    points = zip(row.tokens, row.power, strict=True)
    return line(_short(row), points, lambda point: point[0], lambda point: _at(point[1]))


def _short(row: PeerRow) -> str:
    return row.system.removeprefix("ours: ").removeprefix("transformers ")


def _at(power: Power) -> Interval:
    return power.tpr[FPRS.index(AT)]


def _rate(number: int) -> Callable[[tuple[PeerRow, int, Power]], str]:
    return lambda case: case[2].tpr[number].percent()


def _median(power: Power) -> str:
    return power_of_ten(power.median_log10_p.estimate)
