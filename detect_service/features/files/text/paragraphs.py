"""From the paragraphs of a word processor to blocks of a page: space, rows of tables, lines of code."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from ttmark.detect_service.features.files.text.layout import BULLET, Block, TextRun

MONOSPACED = re.compile(r"courier|consolas|menlo|monaco|\bmono\b|mono$|typewriter", re.I)
"""In the names of fonts whose letters are all of one width."""

# A quarter of a line.
_SPACE = 60
_SHORT = 80
_HEADINGS = 9
_LENGTH = re.compile(r"(-?[0-9]{1,6}(?:\.[0-9]{1,6})?)(in|cm|mm|pt|pc|px)")
_TWIPS = {"in": 1440.0, "cm": 567.0, "mm": 56.7, "pt": 20.0, "pc": 240.0, "px": 15.0}


def whole(text: str | None, default: int = 0) -> int:
    """A whole number that a document states; what is none counts as the default."""
    return int(text) if text and re.fullmatch(r"\s{0,9}-?[0-9]{1,9}\s{0,9}", text) else default


def twips(length: str) -> int:
    """A length with its unit in twentieths of a point; 0: it is none."""
    found = _LENGTH.fullmatch(length)
    return round(float(found[1]) * _TWIPS[found[2]]) if found else 0


class _Spacing(NamedTuple):
    """What tells whether there is space between two paragraphs.

    Attributes:
        before, after: space in twips.
        by_rote: whether there is none to paragraphs of the same style, as word processors have it for lists.
        short: whether it ends before its line does, more or less.
    """

    style: str
    before: int
    after: int
    by_rote: bool
    short: bool
    is_item: bool

    def gap_below(self, above: "_Spacing | None") -> bool | None:
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


class Paragraphs:
    """Makes blocks of a document's paragraphs, which are given in their order."""

    def __init__(self) -> None:
        self._above: _Spacing | None = None

    def block(
        self, runs: Sequence[TextRun], look: Mapping[str, Any], heading: int, marker: str, level: int
    ) -> Block:
        """A heading of a level from 1 to 9, an item, lines of code or none of them.

        Args:
            look: `style`, `before`, `after`, `contextual` and `mono`, as far as they are known.
            level: how many lists it stands in.
        """
        length = sum(len(run.text) for run in runs)
        before, after = look.get("before", 0), look.get("after", 0)
        heading = heading if heading <= _HEADINGS else 0
        short = length < _SHORT and not heading
        spacing = _Spacing(
            look.get("style", ""), before, after, look.get("contextual", False), short, level > 0
        )
        gap, self._above = spacing.gap_below(self._above), spacing
        if heading:
            shown = [TextRun(f"{marker} ")] if marker not in ("", BULLET) else []
            return Block(runs=[*shown, *runs], kind="heading", level=heading)
        if marker:
            return Block(runs=runs, kind="item", marker=marker, level=level, gap=gap)
        if look.get("mono") or is_code(runs):
            return Block(runs=runs, kind="pre", fence="", level=level, gap=gap)
        return Block(runs=runs, level=level, gap=gap)


def row(cells: Sequence[Sequence[Block]]) -> Iterator[Block]:
    """A row of a table: one line where its cells have one each, else what they hold, one after another."""
    said = [[block for block in cell if block.text.strip()] for cell in cells]
    if len(cells) == 1 or any(len(cell) > 1 or (cell and cell[0].kind == "pre") for cell in said):
        for cell in said:
            yield from cell
        return
    runs: list[TextRun] = []
    for number, cell in enumerate(said):
        runs += [TextRun("\t")] * bool(number)
        runs += [replace(run, text=run.text.replace("\n", " ")) for block in cell for run in block.runs]
    yield Block(runs=runs, kind="row")


def without_start(runs: Sequence[TextRun], characters: int) -> list[TextRun]:
    """Runs without so many characters at their beginning, and those that say nothing then."""
    left = []
    for run in runs:
        text = run.text[characters:]
        if text or not characters:
            left.append(replace(run, text=text))
        characters = max(0, characters - len(run.text))
    return left


def is_code(runs: Sequence[TextRun]) -> bool:
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
            first, others = replace(first, runs=[TextRun("\n".join(line.text for line in alike))]), []
        settled += [replace(first, gap=None), *others]
    return settled
