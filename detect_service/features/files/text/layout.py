"""What a page shows, as blocks, and the Markdown that a language model would have written for it.

A mark lies in what a model wrote: numbers of lists, asterisks of bold words, empty lines. A page draws them.
How this is written follows SmolLM2's answers (`docs/results/found-read-answers.jsonl.gz`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Literal

BULLET = "-"


@dataclass(frozen=True, slots=True)
class TextRun:
    """Characters that look alike. They are written as they are: an asterisk in them is an asterisk."""

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False

    @property
    def look(self) -> tuple[bool, bool, bool]:
        return self.bold, self.italic, self.code


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A part of a page that has lines of its own.

    Attributes:
        runs: what it says. Soft line ends are "\\n"; cells of a row are a block each or lie between tabs. A
            paragraph that says nothing is an empty line of the page.
        kind: an item's further paragraphs have `level` and no `marker`; `pre` is written as it is.
        level: of a heading from 1 on; of an item and of what stands in it, the number of lists around it.
        marker: of an item, its number as the page shows it (`1.`, `b)`, `IV.`), or `BULLET` for any picture.
        fence: of `pre`: a language or "" for what a model would put between fences (code); None: no fences.
        quotes: how many quotations it stands in.
        gap: whether the page shows an empty line, or as much space, above it; None: the page does not say.
    """

    runs: Sequence[TextRun]
    kind: Literal["paragraph", "heading", "item", "row", "pre"] = "paragraph"
    level: int = 0
    marker: str = ""
    fence: str | None = None
    quotes: int = 0
    gap: bool | None = None

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)


def markdown(blocks: Sequence[Block]) -> str:
    return "".join(pieces(blocks))


def pieces(blocks: Sequence[Block]) -> Iterator[str]:
    """For each block that says something what it adds to the text, with the line ends above it.

    Where pages do not say, an empty line stands between two paragraphs, and between two numbered items if the
    list's are longer than a line. A page that itself has empty lines between its paragraphs, as typed text
    has, gets no others.
    """
    typed = _typed(blocks)
    long_items = _long_items(blocks)
    before: Block | None = None
    empty = False
    widths: list[int] = []
    for block in blocks:
        if not block.text.strip() and block.marker in ("", BULLET):
            empty = True
            continue
        if block.kind not in ("item", "pre") and not block.level:
            widths.clear()
        gap = "" if before is None else _line_ends(before, block, empty, typed, long_items)
        yield gap + _quoted(_written(block, widths), block.quotes)
        before, empty = block, False


_DEEPEST = 9
_SEVERAL = 6
_A_LINE = 80


def _typed(blocks: Sequence[Block]) -> bool:
    """Whether empty lines set paragraphs apart: one in six places has one."""
    said = [bool(block.text.strip()) for block in blocks]
    runs = [is_text for is_text, _ in groupby(said)]
    return runs[1:-1].count(False) * _SEVERAL >= max(said.count(True), 1)


def _long_items(blocks: Sequence[Block]) -> bool:
    lengths = [len(block.text) for block in blocks if block.kind == "item" and block.marker != BULLET]
    return sum(lengths) >= _A_LINE * len(lengths)


def _line_ends(before: Block, block: Block, empty: bool, typed: bool, long_items: bool) -> str:
    gap = block.gap
    if empty:
        gap = True
    elif gap is None:
        alike = before.kind == block.kind and before.quotes == block.quotes
        is_item = block.kind == "item"
        if is_item and before.level and (block.level > 1 or block.marker == BULLET):
            gap = False
        elif is_item and alike:
            gap = long_items and not typed
        else:
            gap = not typed and not (block.kind == "row" and alike)
    if before.quotes and block.quotes and gap:
        return "\n" + ">" * min(before.quotes, block.quotes, _DEEPEST) + "\n"
    return "\n\n" if gap else "\n"


def _written(block: Block, widths: list[int]) -> str:
    """One block; `widths` are those of the markers of the items around it, which it keeps up to date."""
    if block.kind == "pre":
        text = block.text.strip("\n")
        return text if block.fence is None else f"```{block.fence}\n{text}\n```"
    if block.kind == "heading":
        return "#" * min(block.level, 6) + " " + " ".join(block.text.split())
    text = _emphasised(block.runs).strip(" \n")
    if block.kind == "item":
        del widths[min(block.level, _DEEPEST) - 1 :]
        indentation = " " * sum(widths)
        widths.append(len(block.marker) + 1)
        return f"{indentation}{block.marker} {text}".rstrip(" ")
    return " " * sum(widths[: block.level]) + text if block.level else text


def _emphasised(runs: Sequence[TextRun]) -> str:
    """Runs with the marks of emphasis around them, which touch no white space and cross no line end."""
    written = []
    for (bold, italic, code), alike in groupby(_with_blanks(runs), lambda run: run.look):
        marks = "`" if code else "*" * (2 * bold + italic)
        for line in "".join(run.text for run in alike).splitlines(keepends=True):
            inner = line.strip()
            if marks and inner:
                start = line.index(inner)
                line = line[:start] + marks + inner + marks[::-1] + line[start + len(inner) :]
            written.append(line)
    return "".join(written)


def _with_blanks(runs: Sequence[TextRun]) -> Iterator[TextRun]:
    """The runs; a run of white space looks like the one before it, so that it parts no bold words."""
    before = TextRun("")
    for run in runs:
        before = run if run.text.strip() else replace(before, text=run.text)
        yield before


def _quoted(text: str, quotes: int) -> str:
    mark = ">" * min(quotes, _DEEPEST) + " " * bool(quotes)
    return "\n".join(mark + line for line in text.split("\n"))
