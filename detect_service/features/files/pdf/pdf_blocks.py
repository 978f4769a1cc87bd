"""Paragraphs, headings and items of a PDF, from its lines: what the width of a page broke is joined.

A line goes on in the next one where the next one's first word had no room any more.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from statistics import median
from typing import Literal
from unicodedata import east_asian_width

from ttmark.detect_service.features.files.pdf.pdf_lines import Line
from ttmark.detect_service.features.files.text.layout import BULLET, Block, TextRun, markdown
from ttmark.detect_service.features.files.text.paragraphs import without_start

PAGE = "\x02"
"""Stands in the text of blocks where a page begins; pieces have no control characters."""
_HEADINGS = ((1.75, 1), (1.35, 2), (1.12, 3))
_MARGIN_LINES = 2
_NUMBER = re.compile(r"(\(?(?:\d{1,3}|[a-z]|[ivx]{1,5})[.)])\s+(?=\S)")
_PICTURE = re.compile(
    "([\u2022\u2023\u2043\u25a0-\u25ff\u2713-\u2718\u27a2\u00b7\u2219\uf0a0-\uf0ff])\\s*(?=\\S)"
)
_TYPED = re.compile(r"([-*+\u2013])\s+(?=\S)")
_BROKEN = re.compile("(?:(\\w+)([-\u2010\u00ad])|\u2014)$")
_WORD = re.compile(r"\w+")
_COMPOUND = re.compile("\\w+(?:[-\u2010]\\w+)+")
_FEWEST, _WIDEST_LEADING = 4, 2.8
_ROOM = 0.02  # of a column's width, by which a font may be mistaken
_PIECES = 4
_SUSPENDED = frozenset(("and", "or", "to"))
_NARROWEST, _CLOSE, _LOOSE, _EDGE = 8.0, 0.6, 1.22, 0.6  # of the size of type, and of the leading
_KEPT = re.compile(
    "well|self|long|short|high|low|non|all|half|semi|multi|full|new|state|real|hard|first|second|third|one|two|"
    "three|four|five|six|seven|eight|nine|ten|(?:twen|thir|for|fif|six|seven|eigh|nine)ty"
)


@dataclass(slots=True, eq=False)
class _Paragraph:
    """Lines that are one block.

    Attributes:
        text_x0: of an item, where its text begins.
        cut: characters of the first line that are the item's marker.
    """

    lines: list[Line]
    kind: Literal["paragraph", "heading", "item", "row", "pre"] = "paragraph"
    level: int = 0
    marker: str = ""
    text_x0: float = 0.0
    cut: int = 0
    gap: bool | None = None


@dataclass(slots=True)
class _Setting:
    """How a column is set, over all pages.

    Attributes:
        justified: whether most lines end at the right edge.
        leading: from base line to base line, of the size of type.
    """

    left: float
    right: float
    justified: bool = False
    leading: float = 1.3

    def fills(self, line: Line, following: Line) -> bool:
        """Whether the following line's first word had no room in the line."""
        if line.is_row or following.is_row or line.x1 - self.left < _NARROWEST * line.size:
            return False
        if self.justified:
            return line.x1 > self.right - _EDGE * line.size
        room = self.right - _ROOM * (self.right - self.left) - line.x1
        return 0.25 * line.size + following.first_word > room


def text_of(pages: Sequence[Sequence[Line]]) -> tuple[str, tuple[int, ...]]:
    """The text of a document, and where in it each page begins, in characters."""
    before, *texts = markdown(list(_Blocks(pages).made()) if any(pages) else []).strip().split(PAGE)
    return before + "".join(texts), tuple(accumulate(map(len, texts[:-1]), initial=len(before)))


class _Blocks:
    def __init__(self, pages: Sequence[Sequence[Line]]) -> None:
        self._aside = _margin_lines(pages)
        self._lines = [line for page in pages for line in page]
        sizes: Counter[float] = Counter()
        looks: Counter[tuple[bool, bool, bool]] = Counter()
        for line in self._lines:
            sizes[line.size] += len(line.text)
            for run in line.runs:
                looks[run.look] += len(run.text)
        self._size = sizes.most_common(1)[0][0]
        self._look = looks.most_common(1)[0][0]
        self._body = [line for line in self._lines if id(line) not in self._aside]
        self._settings = _settings(self._body)
        self._narrow = dict(self._narrow_parts())
        self._words = _KnownWords(self._lines)
        self._numbers: dict[int, str] = {}
        self._items: list[float] = []
        self._begun_pages = 0

    def made(self) -> Iterator[Block]:
        aside: list[Line] = []
        current: _Paragraph | None = None
        following = dict(zip(map(id, self._body), [*self._body[1:], None], strict=True))
        for line in self._lines:
            if id(line) in self._aside:
                aside.append(line)
            elif current is not None and self._goes_on(current, line, following[id(line)]):
                current.lines.append(line)
            else:
                yield from self._blocks(current, aside)
                aside.clear()
                current = self._begun(current, line)
        yield from self._blocks(current, aside)

    def _narrow_parts(self) -> Iterator[tuple[int, _Setting]]:
        """Lines of prose that all end well before the others of their column, each with its own setting."""
        parts: list[list[Line]] = [self._body[:1]]
        for before, line in pairwise(self._body):
            if _stacked(before, line) and line.size == before.size and not self._apart(before, line):
                parts[-1].append(line)
            else:
                parts.append([line])
        for part in parts:
            setting = self._settings[part[0].column]
            right = max(line.x1 for line in part)
            full = sum(line.x1 > right - 4 * line.size for line in part)
            prose = sum(line.text[:1].islower() for line in part)
            narrow = right < setting.right - 2 * part[0].size
            if narrow and len(part) >= _FEWEST and min(2 * full, 3 * prose) > len(part):
                own = _Setting(min(line.x0 for line in part), right, leading=setting.leading)
                own.justified = 2 * sum(line.x1 > right - 1.0 for line in part) > len(part)
                yield from ((id(line), own) for line in part)

    def _fills(self, line: Line, following: Line) -> bool:
        return self._narrow.get(id(line), self._settings[line.column]).fills(line, following)

    def _goes_on(self, current: _Paragraph, line: Line, following: Line | None) -> bool:
        last, first = current.lines[-1], len(current.lines) == 1
        ours, theirs = self._settings[last.column], self._settings[line.column]
        if abs(last.size - line.size) > 0.06 * last.size or self._apart(last, line):
            return False
        if current.kind == "pre" or (self._is_code(line) and not self._fills(last, line)):
            return current.kind == "pre" and self._is_code(line)
        if abs(ours.right - ours.left - theirs.right + theirs.left) > 0.1 * (ours.right - ours.left):
            return False
        if self._marker(current, line) is not None or not self._fills(last, line):
            return False
        close, moved = _CLOSE * line.size, (line.x0 - theirs.left) - (last.x0 - ours.left)
        if current.kind == "heading":
            return True
        if not first:
            return abs(moved) < close
        if current.kind == "item":
            return line.x0 - theirs.left < current.text_x0 - ours.left + close
        if moved < close:
            return True
        # The first line of another paragraph stands alone there, the second one of a hanging one does not.
        return following is not None and abs(following.x0 - line.x0) < close and self._fills(line, following)

    def _apart(self, last: Line, line: Line) -> bool:
        """Whether there is more space between two lines of a column than between lines of a paragraph."""
        leading = self._settings[last.column].leading * max(last.size, line.size)
        return _stacked(last, line) and last.y - line.y > _LOOSE * leading

    def _begun(self, before: _Paragraph | None, line: Line) -> _Paragraph:
        last = before.lines[-1] if before else None
        found = _Paragraph([line])
        left = self._settings[line.column].left
        close = _CLOSE * line.size
        if last is not None and _stacked(last, line):
            indented = last.x0 < line.x0 - close and line.x0 > left + close
            found.gap = self._apart(last, line)
            if before is not None and before.kind == "paragraph" and len(before.lines) > 1 and indented:
                found.gap = True
        marker = self._marker(before, line)
        ratio = line.size / self._size
        if line.is_row:
            found.kind = "row"
        elif self._is_code(line):
            found.kind = "pre"
        elif marker is not None:
            found.kind, (found.marker, found.cut, found.text_x0) = "item", marker
            self._numbers[round(line.x0 / 9)] = found.marker
            self._nest(found.text_x0 - left, 1.2 * line.size)
            found.level = len(self._items)
        elif ratio >= _HEADINGS[-1][0]:
            found.kind, found.gap = "heading", None
            found.level = next(level for least, level in _HEADINGS if ratio >= least)
            self._items.clear()
        elif self._items and line.x0 > left + close and abs(line.x0 - left - self._items[-1]) < close:
            found.level = len(self._items)
        elif self._items and line.x0 - left < self._items[0] - close:
            self._items.clear()
        if before is not None and before.kind == "heading":
            found.gap = None
        return found

    def _nest(self, x0: float, close: float) -> None:
        while self._items and self._items[-1] > x0 + close:
            self._items.pop()
        if self._items and x0 < self._items[-1] + close:
            self._items[-1] = x0
        else:
            self._items.append(x0)

    def _marker(self, before: _Paragraph | None, line: Line) -> tuple[str, int, float] | None:
        """An item's marker, its length with blanks, and where its text begins.

        A line that may go on with the one before it begins an item only if a list led there.
        """
        if line.dot:
            return BULLET, 0, line.x0
        text = line.text
        picture = _PICTURE.match(text)
        match = picture or _TYPED.match(text) or _NUMBER.match(text)
        if match is None or (line.is_row and "\t" in text[match.end() :]):
            return None
        inside = len(line.runs[0].text) <= match.end() < len(text) and len(line.places) > 1
        text_x0 = line.places[1] if inside else line.x0
        last = before.lines[-1] if before else None
        if last is not None and before is not None and not self._apart(last, line):
            aligned = abs(last.x0 - line.x0) < _CLOSE * line.size
            led = _follows(self._numbers.get(round(line.x0 / 9)), match[1])
            if aligned and not led and self._fills(last, line):
                return None
        return BULLET if picture else match[1], match.end(), text_x0

    def _is_code(self, line: Line) -> bool:
        return not self._look[2] and all(run.code for run in line.runs)

    def _blocks(self, paragraph: _Paragraph | None, aside: Sequence[Line]) -> Iterator[Block]:
        if paragraph is not None:
            yield self._block(paragraph)
        for line in aside:
            yield Block(runs=[TextRun(self._begins(line)), *line.runs])

    def _block(self, made: _Paragraph) -> Block:
        if made.kind == "pre":
            left = min(line.x0 for line in made.lines)
            wide = [(line.x1 - line.x0) / len(line.text) for line in made.lines if len(line.text) > 1]
            em = median(wide) if wide else made.lines[0].size
            written = "\n".join(
                self._begins(line) + " " * round((line.x0 - left) / em) + line.text for line in made.lines
            )
            return Block(runs=[TextRun(written)], kind="pre", fence="", gap=made.gap)
        runs = without_start(made.lines[0].runs, made.cut)
        runs[0] = replace(runs[0], text=self._begins(made.lines[0]) + runs[0].text)
        for line in made.lines[1:]:
            end = "".join(run.text for run in runs[-_PIECES:])
            between = self._words.between(end, line.text)
            kept = runs[-1].text[:-1] if between is None else runs[-1].text + between
            runs[-1] = replace(runs[-1], text=kept)
            first, *others = line.runs
            runs += [replace(first, text=self._begins(line) + first.text), *others]
        looks = [
            self._seen(run, before, after)
            for before, run, after in zip([None, *runs], runs, [*runs[1:], None], strict=False)
        ]
        return Block(runs=looks, kind=made.kind, level=made.level, marker=made.marker, gap=made.gap)

    def _begins(self, line: Line) -> str:
        """A mark for each page that begins with a line."""
        begun = max(0, line.page + 1 - self._begun_pages)
        self._begun_pages += begun
        return PAGE * begun

    def _seen(self, run: TextRun, before: TextRun | None, after: TextRun | None) -> TextRun:
        """A run as it differs from most of the document; signs that stand alone are set in what has them."""
        alone = not any(map(str.isalnum, run.text))
        if alone and not any(other and other.look == run.look for other in (before, after)):
            return TextRun(run.text)
        bold, italic, code = (own and not usual for own, usual in zip(run.look, self._look, strict=True))
        return TextRun(run.text, bold, italic, code)


def _stacked(last: Line, line: Line) -> bool:
    return last.page == line.page and last.column == line.column and last.y > line.y


def _follows(before: str | None, marker: str) -> bool:
    number = re.search("[0-9]+", marker)
    if number is None:
        return before == marker
    earlier = re.search("[0-9]+", before or "")
    return int(number[0]) == (int(earlier[0]) + 1 if earlier else 1)


def _margin_lines(pages: Sequence[Sequence[Line]]) -> set[int]:
    """Ids of the first and last lines of pages that others have at the same place, but for numbers."""
    found: dict[tuple[str, int], list[tuple[int, Line]]] = defaultdict(list)
    for number, page in enumerate(pages):
        ordered = sorted(page, key=lambda line: -line.y)
        for line in {*ordered[:_MARGIN_LINES], *ordered[-_MARGIN_LINES:]}:
            found[re.sub("[0-9]+|^[ivxlc]+$", "#", line.text), round(line.y)].append((number, line))
    aside = {id(line) for lines in found.values() if len({n for n, _ in lines}) > 1 for _, line in lines}
    for page in pages:
        if all(id(line) in aside for line in page):
            aside.difference_update(map(id, page))
    return aside


def _settings(lines: Sequence[Line]) -> dict[str, _Setting]:
    columns: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        columns[line.column].append(line)
    return {name: _setting(of_column) for name, of_column in columns.items()}


def _setting(lines: Sequence[Line]) -> _Setting:
    texts = [line for line in lines if not line.is_row] or lines
    ends = sorted((line.x1 for line in texts), reverse=True)
    few = max(1, len(ends) // 33)
    # One table or picture's words beyond the text's edge are not it.
    right = next(
        end
        for place, end in enumerate(ends)
        if ends[min(place + few, len(ends)) - 1] > end - 3 * lines[0].size
    )
    found = _Setting(min(line.x0 for line in texts), right)
    at_edge = sum(abs(end - right) < 1.0 for end in ends)
    found.justified = at_edge > 2 and at_edge > 0.4 * len(ends)
    pairs = [(a, b, (a.y - b.y) / a.size) for a, b in pairwise(lines) if _stacked(a, b) and a.size == b.size]
    within = [ratio for a, b, ratio in pairs if found.fills(a, b)]
    if within:
        found.leading = min(median(within), _WIDEST_LEADING)
    elif pairs:
        found.leading = min(1.7, *(ratio for _, _, ratio in pairs), 1.7)
    return found


class _KnownWords:
    """The words of a document, which say whether a hyphen at the end of a line belongs to one."""

    def __init__(self, lines: Sequence[Line]) -> None:
        text = "\n".join(line.text.lower() for line in lines)
        self._words = set(_WORD.findall(text))
        self._compounds = set(_COMPOUND.findall(text.replace("\u2010", "-")))
        self._soft = all("\u2010" not in line.text[:-1] for line in lines)

    def between(self, text: str, following: str) -> str | None:
        """What stands between two lines, a blank or nothing; None: the first one's hyphen goes."""
        start = _WORD.match(following)
        match = _BROKEN.search(text)
        if match is None or start is None:
            ends = text[-1:] + following[:1]
            return "" if all(east_asian_width(letter) in "WF" for letter in ends) else " "
        if match[1] is not None and start[0] in _SUSPENDED:
            return " "
        return None if match[1] is not None and self._is_broken(match[1], match[2], start[0]) else ""

    def _is_broken(self, before: str, hyphen: str, after: str) -> bool:
        if hyphen == "\u00ad":
            return True
        first, second = before.lower(), after.lower()
        if f"{first}-{second}" in self._compounds or not (before[-1].isalpha() and after[0].islower()):
            return False
        if first + second in self._words or (hyphen == "\u2010" and self._soft):
            return True
        return not _KEPT.fullmatch(first)
