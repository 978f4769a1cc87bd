"""From the paragraphs of a word processor to blocks of a page: space, rows of tables, lines of code."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple, Self

from ttmark.detect_service.extraction.layout import Block, Run

MONOSPACED = re.compile(r"courier|consolas|menlo|monaco|\bmono\b|mono$|typewriter", re.I)
"""In the names of fonts whose letters are all of one width."""

# A quarter of a line.
_SPACE = 60
_SHORT = 80
_LENGTH = re.compile(r"(-?[0-9]{1,6}(?:\.[0-9]{1,6})?)(in|cm|mm|pt|pc|px)")
_TWIPS = {"in": 1440.0, "cm": 567.0, "mm": 56.7, "pt": 20.0, "pc": 240.0, "px": 15.0}


def twips(length: str) -> int:
    """A length with its unit in twentieths of a point; 0: it is none."""
    found = _LENGTH.fullmatch(length)
    return round(float(found[1]) * _TWIPS[found[2]]) if found else 0


class Spacing(NamedTuple):
    """What tells whether there is space between two paragraphs.

    Attributes:
        before, after: space in twips.
        by_rote: whether there is none to paragraphs of the same style, as word processors have it for lists.
        short: whether it ends before its line does, more or less.
        is_item: whether it stands in a list.
    """

    style: str
    before: int
    after: int
    by_rote: bool
    short: bool
    is_item: bool

    @classmethod
    def of(cls, look: Mapping[str, Any], length: int, is_item: bool, is_heading: bool) -> Self:
        return cls(
            look.get("style", ""),
            look.get("before", 0),
            look.get("after", 0),
            look.get("contextual", False),
            length < _SHORT and not is_heading,
            is_item,
        )

    def gap_below(self, above: "Spacing | None") -> bool | None:
        """Whether the page shows an empty line's worth of space below another paragraph.

        None: nobody can tell, since it may be a template's space between all paragraphs, of which empty ones
        may be what sets paragraphs apart.
        """
        if above is None or (self.style == above.style and (self.by_rote or above.by_rote)):
            return None
        space = max(above.after, self.before)
        if self.is_item or above.is_item:
            return space > _SPACE if self.is_item and above.is_item else None
        return False if space <= _SPACE and self.short and above.short else None


def row(cells: Sequence[Sequence[Block]]) -> Iterator[Block]:
    """A row of a table: one line where its cells have one each, else what they hold, one after another."""
    said = [[block for block in cell if block.text.strip()] for cell in cells]
    if len(cells) == 1 or any(len(cell) > 1 or (cell and cell[0].kind == "pre") for cell in said):
        for cell in said:
            yield from cell
        return
    runs: list[Run] = []
    for number, cell in enumerate(said):
        runs += [Run("\t")] * bool(number)
        runs += [replace(run, text=run.text.replace("\n", " ")) for block in cell for run in block.runs]
    yield Block(runs=runs, kind="row")


def is_code(runs: Sequence[Run]) -> bool:
    """Whether a paragraph says something, and all of it in letters of one width."""
    said = [run for run in runs if run.text.strip()]
    return bool(said) and all(run.code for run in said)


def settled(blocks: Sequence[Block]) -> list[Block]:
    """Lines of code that follow each other as one block; a document in nothing but one width is no code."""
    said = [block for block in blocks if block.text.strip()]
    if all(block.kind == "pre" or is_code(block.runs) for block in said):
        return [
            replace(
                block,
                kind="paragraph" if block.kind == "pre" else block.kind,
                runs=[replace(run, code=False) for run in block.runs],
            )
            for block in blocks
        ]
    settled: list[Block] = []
    for code, group in groupby(blocks, lambda block: block.kind == "pre"):
        alike = list(group)
        first, *others = alike
        if code:
            first, others = replace(first, runs=[Run("\n".join(line.text for line in alike))]), []
        settled += [replace(first, gap=None), *others]
    return settled
