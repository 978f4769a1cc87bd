"""Numbers in results files, and how a document writes them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NUMBER = r"-?\d+(?:,\d{3})*(?:\.\d+)?(?:e-?\d+)?"
CELL = re.compile(rf"({NUMBER})( %)?(?: \[({NUMBER}), ({NUMBER})\])?")

Step = str | int | Mapping[str, object]


class BadFigure(Exception):
    """A value, claim or setting that cannot be; the message says which."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A number, with its interval where it has one.

    A format is Python's, or `%1` (percent with one digit), `c1` (the same without its sign). With an `i` at
    its end the interval follows in brackets.
    """

    estimate: float
    low: float | None = None
    high: float | None = None

    def __format__(self, spec: str) -> str:
        one = spec.removesuffix("i")
        text = _written(self.estimate, one)
        if one == spec:
            return text
        if self.low is None or self.high is None:
            raise BadFigure(f"{text} has no interval")
        ends = one.replace("%", "c")
        return f"{text} [{_written(self.low, ends)}, {_written(self.high, ends)}]"


def _written(value: float, spec: str) -> str:
    kind, digits = spec[:1], int(spec[1:] or 0) if spec[1:].isdecimal() or not spec[1:] else 0
    if kind in ("%", "c"):
        return f"{100 * value:.{digits}f}" + " %" * (kind == "%")
    return format(int(value) if not spec and value.is_integer() else value, spec)


def value_at(document: Any, path: Sequence[Step]) -> Measured:
    """What stands at a path: names, numbers of entries; a mapping takes the one entry that has its values."""
    place = document
    for step in path:
        try:
            place = _chosen(place, step) if isinstance(step, Mapping) else place[step]
        except (KeyError, IndexError, TypeError):
            raise BadFigure(f"no {step!r} in {_there(place)}") from None
    return measured(place)


def _there(place: Any) -> str:
    return ", ".join(map(str, place)) if isinstance(place, dict) else f"a {type(place).__name__}"


def _chosen(entries: Any, wanted: Mapping[str, object]) -> Any:
    if isinstance(entries, dict) and "columns" in entries:
        entries = [dict(zip(entries["columns"], row, strict=True)) for row in entries["rows"]]
    found = [entry for entry in entries if all(_inside(entry, key) == one for key, one in wanted.items())]
    if len(found) != 1:
        raise BadFigure(f"{len(found)} entries have {dict(wanted)}")
    return found[0]


def _inside(entry: Any, dotted: str) -> object:
    """`a.b` of an entry: `b` of its `a`; None where it has none. A name that has dots itself goes first."""
    if dotted in entry:
        return entry[dotted]
    for name in dotted.split("."):
        entry = entry.get(name) if isinstance(entry, Mapping) else None
    return entry


def measured(place: Any) -> Measured:
    """A number, an interval, or a cell of a table."""
    if isinstance(place, int | float) and not isinstance(place, bool):
        return Measured(float(place))
    if isinstance(place, dict) and {"estimate", "low", "high"} <= place.keys():
        return Measured(place["estimate"], place["low"], place["high"])
    if not isinstance(place, str) or (cell := CELL.fullmatch(place)) is None:
        raise BadFigure(f"no number: {_there(place)}")
    return _of_cell(cell)


def leading_number(text: str) -> Measured:
    """The number that a text begins with, with its interval where it has one."""
    if (cell := CELL.match(text)) is None:
        raise BadFigure(f"{text!r} does not begin with a number")
    return _of_cell(cell)


def _of_cell(cell: re.Match[str]) -> Measured:
    unit = 100.0 if cell[2] else 1.0
    estimate, *ends = (float(one.replace(",", "")) / unit for one in cell.group(1, 3, 4) if one is not None)
    return Measured(estimate, *ends)


def section(page: Path, anchor: str) -> str:
    """The text below a heading, up to the next one of its rank or above; the whole page without an anchor."""
    if not page.is_file():
        raise BadFigure(f"no page {page.name}")
    text = page.read_text()
    if not anchor:
        return text
    lines, kept, rank = text.splitlines(), [], 0
    for line in lines:
        heading = re.match(r"(#+) (.+)", line)
        if heading and rank and len(heading[1]) <= rank:
            break
        if heading and not rank and _anchor(heading[2]) == anchor:
            rank = len(heading[1])
        if rank:
            kept.append(line)
    if not kept:
        raise BadFigure(f"no heading #{anchor} in {page.name}")
    return "\n".join(kept)


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-")


def load(path: Path) -> Any:
    if not path.is_file():
        raise BadFigure(f"no results file {path}")
    return json.loads(path.read_text())
