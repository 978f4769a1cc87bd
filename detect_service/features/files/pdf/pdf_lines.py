"""The lines of a page of a PDF, column after column, from the pieces of words that it draws."""

import re
import unicodedata
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import median

from ttmark.detect_service.features.files.pdf.pdf_pieces import Drawing, Piece
from ttmark.detect_service.features.files.text.layout import TextRun

Row = list[Piece]
_ITEM = re.compile("[0-9]{1,3}[.)]$|[\u2022\u25cf\u25cb\u25aa]")
_SAME_LINE = 0.45  # of the size of type: less than any leading
_TINY, _SMALL = 0.45, 0.75
_LOW, _HIGH, _MIDDLE = -0.15, 0.75, 0.35  # of letters, of their size, from the base line
_AGAIN = 0.2
_BLANK = 0.15
_BLANK_BESIDE_BLANKS = 0.2  # where the file has blanks of its own, less is a kern
_CELLS = 1.8
_GUTTER = 0.8
_COLUMN = 8.0
_FULL, _WORDS = 0.7, 12
_CANDIDATES = 12


@dataclass(slots=True, eq=False)
class Line:
    """A line of a column; `dot` is whether a small shape stands before it.

    Attributes:
        column: the same for columns at the same place of several pages.
        first_word: its width.
        runs: what it says, a run for each piece; cells of a row lie between tabs.
        page: from 0 on.
    """

    x0: float
    x1: float
    y: float
    size: float
    first_word: float
    runs: list[TextRun]
    places: list[float]
    column: str
    page: int
    dot: bool = False

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)

    @property
    def is_row(self) -> bool:
        return any("\t" in run.text for run in self.runs)


def lines_of(drawing: Drawing, page: int) -> Iterator[Line]:
    """Lines in the order in which one reads them; what stands at an angle comes last."""
    for angle in sorted(drawing.pieces):
        pieces = drawing.pieces[angle]
        for column, rows in _columns(_rows(pieces), str(angle)):
            for row in rows:
                line = _line(row, column, page)
                line.dot = angle == 0 and any(_before(line, *dot) for dot in drawing.dots)
                yield line


def _before(line: Line, x: float, y: float) -> bool:
    return 0 < line.x0 - x < 3 * line.size and 0 < y - line.y < 0.7 * line.size


def _rows(pieces: Sequence[Piece]) -> list[Row]:
    """Pieces that stand side by side, from the top down; what is drawn twice for weight counts once."""
    rows: list[Row] = []
    for piece in sorted(pieces, key=lambda piece: -piece.y):
        if rows and rows[-1][0].y - piece.y < _SAME_LINE * _of_line(rows[-1][0].size, piece.size):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    for row in rows:
        row.sort(key=lambda piece: piece.x0)
    for above, below in pairwise(rows):
        _join_scripts(above, below)
        _join_scripts(below, above)
    return [_once(row) for row in rows if row]


def _once(row: Row) -> Row:
    """A row without what is drawn over the same letters again, as it is for weight."""
    kept: Row = []
    for piece in row:
        if kept and _covers(kept[-1], piece):
            kept[-1].blank |= piece.blank
            continue
        while kept and _covers(piece, kept[-1]):
            piece.blank |= kept.pop().blank
        kept.append(piece)
    return kept


def _covers(piece: Piece, other: Piece) -> bool:
    near = _AGAIN * piece.size
    if abs(piece.size - other.size) > near or abs(piece.y - other.y) > near:
        return False
    begins = abs(piece.x0 - other.x0) < near and piece.text.startswith(other.text)
    return begins or (abs(piece.x1 - other.x1) < near and piece.text.endswith(other.text))


def _of_line(size: float, other: float) -> float:
    """The size of type by which base lines may be apart: a heading tells nothing of small type."""
    small, large = sorted((size, other))
    return large if small > _SMALL * large else small


def _join_scripts(row: Row, line: Row) -> None:
    """Moves smaller letters that are raised or lowered beside those of a line into it."""
    starts = [piece.x0 for piece in line]
    moved: Row = []
    for piece in row:
        at = bisect(starts, piece.x0)
        near = _SAME_LINE * piece.size
        goes_on = moved and piece.x0 - moved[-1].x1 < near
        if goes_on or any(_is_script(piece, each, near) for each in line[max(at - 1, 0) : at + 1]):
            moved.append(piece)
    if moved:
        gone = set(map(id, moved))
        row[:] = [piece for piece in row if id(piece) not in gone]
        line[:] = sorted([*line, *moved], key=lambda piece: piece.x0)


def _is_script(piece: Piece, beside: Piece, near: float) -> bool:
    touches = piece.x0 < beside.x1 + near and beside.x0 < piece.x1 + near
    height = (piece.y + _MIDDLE * piece.size - beside.y) / beside.size
    return touches and _TINY * beside.size < piece.size < _SMALL * beside.size and _LOW < height < _HIGH


def _columns(rows: list[Row], name: str) -> Iterator[tuple[str, list[Row]]]:
    """Rows of one column each. Columns are prose on both sides of a gap that several rows have."""
    split = _split(rows)
    if split is None:
        if rows:
            yield name, rows
        return
    first, end, x = split
    yield from _columns(rows[:first], name)
    for side, pieces in (
        ("l", [piece for row in rows[first:end] for piece in row if piece.x0 < x - 1]),
        ("r", [piece for row in rows[first:end] for piece in row if piece.x0 >= x - 1]),
    ):
        yield from _columns(_rows(pieces), f"{name} {side}{round(x / 9)}")
    yield from _columns(rows[end:], name)


def _split(rows: list[Row]) -> tuple[int, int, float] | None:
    """The largest part of the rows that lies in two columns: from, to, and where the second one begins."""
    if len(rows) < 3:
        return None
    em = median(row[0].size for row in rows)
    edge = min(row[0].x0 for row in rows)
    starts: Counter[int] = Counter()
    for row in rows:
        places = [row[0].x0] + [b.x0 for a, b in pairwise(row) if b.x0 - a.x1 > _GUTTER * em]
        starts.update(round(x) for x in places if x > edge + _COLUMN * em)
    best = None
    common = [start for start, times in starts.most_common(_CANDIDATES) if times > 1]
    # Markers of items stand before the edge that their lines have.
    for start in {min(x for x in starts if common_x - 3 * em < x <= common_x) for common_x in common} | set(
        common
    ):
        x, gutter = start - 1.0, start - _GUTTER * em
        crossing = [any(piece.x0 < x and piece.x1 > gutter for piece in row) for row in rows]
        at = 0
        for crosses, same in groupby(crossing):
            first, at = at, at + len(list(same))
            if crosses or (best and at - first <= best[1] - best[0]):
                continue
            left = [[piece for piece in row if piece.x0 < x] for row in rows[first:at]]
            right = [[piece for piece in row if piece.x0 >= x] for row in rows[first:at]]
            prose = _is_prose(left, 3, em) and _is_prose(right, 2, em)
            if prose or (_is_list(left) and _is_list(right)):
                best = first, at, float(start)
    return best


def _is_list(rows: list[Row]) -> bool:
    """Whether half of the rows, and not one alone, begin as items do; a table's numbers are in one column."""
    said = [row for row in rows if row]
    return 2 * sum(bool(_ITEM.match(row[0].text)) for row in said) >= max(len(said), 4)


def _is_prose(rows: list[Row], fewest: int, em: float) -> bool:
    said = [row for row in rows if row]
    if len(said) < fewest:
        return False
    left, right = min(row[0].x0 for row in said), max(row[-1].x1 for row in said)
    full = sum(row[-1].x1 - row[0].x0 > _FULL * (right - left) for row in said)
    letters = median(sum(len(piece.text) for piece in row) for row in said)
    return right - left > _COLUMN * em and 2 * full >= len(said) and letters >= _WORDS


def _line(row: Row, column: str, page: int) -> Line:
    spaced = 2 * sum(piece.blank for piece in row) >= len(row) - 1
    blank = _BLANK_BESIDE_BLANKS if spaced and len(row) > 1 else _BLANK
    sizes: Counter[float] = Counter()
    for piece in row:
        sizes[round(piece.size, 1)] += len(piece.text)
    size = sizes.most_common(1)[0][0]
    gaps = [b.x0 - a.x1 for a, b in pairwise(row)]
    # The blanks of a justified line are all wide.
    usual = min(gaps) if len(gaps) > 2 else 0.0
    cell = size * _CELLS if usual > _CELLS * 2 * size else max(_CELLS * size, 3 * usual)
    written = [
        (piece, _between(piece, following, size, blank, cell))
        for piece, following in zip(row, [*row[1:], None], strict=True)
    ]
    words = [place for place, (_, after) in enumerate(written) if after]
    first_word = row[words[0] if words else -1].x1 - row[0].x0
    if _right_to_left(row):
        written = _in_reading_order(written)
    runs = [TextRun(piece.text + after, *piece.look) for piece, after in written]
    runs[-1] = TextRun(runs[-1].text.rstrip(), *written[-1][0].look)
    y = median(piece.y for piece in row if abs(piece.size - size) <= 0.1)
    places = [piece.x0 for piece, _ in written]
    return Line(row[0].x0, row[-1].x1, y, size, first_word, runs, places, column, page)


def _between(piece: Piece, following: Piece | None, size: float, blank: float, cell: float) -> str:
    """A tab between cells, a blank between words; what lies over other words is not one with them."""
    if following is None:
        return ""
    gap = following.x0 - piece.x1
    if gap > cell:
        return "\t"
    least = (0.03 if piece.blank else blank) * min(size, piece.size)
    over = gap < -_BLANK * size and following.text[0].isalnum()
    return " " if gap > least or over else ""


def _right_to_left(row: Row) -> bool:
    kinds = [unicodedata.bidirectional(letter) for piece in row for letter in piece.text]
    return sum(kind in ("R", "AL") for kind in kinds) > kinds.count("L")


def _in_reading_order(written: list[tuple[Piece, str]]) -> list[tuple[Piece, str]]:
    """A line of Hebrew or Arabic is drawn as one sees it; words in other letters, and numbers, stay."""
    ordered: list[tuple[Piece, str]] = []
    at = len(written)
    for plain, same in groupby(reversed(written), lambda one: _is_plain(one[0].text)):
        group = list(same)
        at -= len(group)
        before = written[at - 1][1] if at else ""
        if plain:
            ordered += [*group[:0:-1], (group[0][0], before)]
        else:
            blanks = [written[place - 1][1] for place in range(at + len(group) - 1, at, -1)]
            for (piece, _), after in zip(group, [*blanks, before], strict=True):
                piece.text = piece.text[::-1]
                ordered.append((piece, after))
    return ordered


def _is_plain(text: str) -> bool:
    return any(unicodedata.bidirectional(letter) in ("L", "EN") for letter in text)
