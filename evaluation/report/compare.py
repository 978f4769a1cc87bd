"""Two JSON results side by side: the figures at the same place in both, and their ratio."""

from collections.abc import Iterator
from typing import Any

from ttmark.evaluation.report.result import Table

LABELS = ("name", "scheme", "block_size", "setting", "length")


def compare_documents(before_name: str, before: Any, after_name: str, after: Any) -> Table:
    """One row for each number that both documents hold.

    Raises:
        ValueError: they share no number.
    """
    first, second = dict(_numbers(before, "")), dict(_numbers(after, ""))
    shared = [place for place in first if place in second]
    if not shared:
        raise ValueError(f"{before_name} and {after_name} have no figure in common")
    rows = tuple(
        (place, f"{first[place]:.4g}", f"{second[place]:.4g}", _ratio(first[place], second[place]))
        for place in shared
    )
    return Table("Comparison", ("figure", before_name, after_name, "ratio"), rows)


def _numbers(value: Any, place: str) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict):
        for name, child in value.items():
            yield from _numbers(child, f"{place}.{name}" if place else str(name))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _numbers(child, f"{place}[{_label(child) or index}]")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield place, float(value)


def _label(child: Any) -> str:
    """What tells an entry of a list from its neighbours, whatever its position."""
    if not isinstance(child, dict):
        return ""
    return " ".join(str(child[name]) for name in LABELS if isinstance(child.get(name), str | int))


def _ratio(before: float, after: float) -> str:
    return f"{after / before:.3f}" if before else ""
