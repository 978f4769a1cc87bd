"""Parts of the pages of reports: lists, shares in words, and intervals drawn as lines."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.report.result import rate_name
from ttmark.evaluation.run_manifest import in_words


def made_with(report: Mapping[str, Any], more: str = "") -> dict[str, str]:
    """Command, time, machine and versions of a report."""
    return {
        "Command": report["command"],
        "Time": f"{report['seconds']:,.0f} s of this command{more}",
        "Machine": f"{in_words(report['machine'])}, {report['machine']['system']}",
        "Versions": ", ".join(f"{name} {version}" for name, version in report["versions"].items()),
    }


def figures_table(unit: str, heads: Iterable[str], rows: Iterable[tuple[str, int, str]]) -> Iterator[str]:
    """A table of rows by name, each with a number of texts (or of another unit) and cells."""
    shown = "".join(f"<th>{head}</th>" for head in heads)
    yield f'<table class="figures"><thead><tr><th></th><th class="n">{unit}</th>{shown}</tr></thead><tbody>'
    for name, count, cells in rows:
        texts = f'<td class="n" data-unit="{unit}">{count:,}</td>'
        yield f'<tr><th scope="row">{escape(name)}</th>{texts}{cells}</tr>'
    yield "</tbody></table>"


def bullets(lines: Sequence[str]) -> str:
    """A list without order."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"


def percent(share: float) -> str:
    """A share in percent with as many digits as small ones need."""
    value = 100 * share
    return f"{value:.1f}" if value >= 1 or value == 0 else f"{value:.2g}"


def share(one: Figure) -> str:
    """The share that is found, with its interval."""
    interval = one.interval
    return f"{percent(interval.estimate)}\u00a0% [{percent(interval.low)}, {percent(interval.high)}]"


def figure_cell(one: Figure, end: float = 1.0, *, promised: bool = False) -> str:
    """A cell of a table: the share in words below its interval, drawn on an axis from 0 to `end`."""
    bar = _bar(one, end, promised=promised)
    return f'<td data-rate="at {rate_name(one.rate)}">{bar}<span>{share(one)}</span></td>'


def _bar(one: Figure, end: float, *, promised: bool) -> str:
    """The interval as a line, the share as a mark, the promised rate as a stroke across."""
    interval = one.interval
    low, high, at = (
        100 * min(1.0, value / end) for value in (interval.low, interval.high, interval.estimate)
    )
    stroke = ""
    if promised:
        place = 100 * one.rate / end
        stroke = f'<rect class="promise" x="{place:.2f}" y="0" width="0.8" height="12"/>'
    return (
        '<svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="axis" x="0" y="0" width="100" height="12"/>'
        f'<rect class="interval" x="{low:.2f}" y="4.5" width="{max(0.4, high - low):.2f}" height="3"/>'
        f'{stroke}<rect class="estimate" x="{max(0.0, at - 0.6):.2f}" y="1.5" width="1.2" height="9"/></svg>'
    )
