"""The text of a picture, as a machine reads it: its words are laid out as those of a PDF."""

import re
import resource
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from statistics import median
from typing import Any

from ttmark.detect_service.extraction.extraction import Extraction, UnreadableFile
from ttmark.detect_service.extraction.pdf_blocks import text_of
from ttmark.detect_service.extraction.pdf_lines import Line, lines_of
from ttmark.detect_service.extraction.pdf_pieces import Drawing, Look, Piece
from ttmark.detect_service.extraction.tesseract import MOST_PIXELS, Picture, pictures_of, read_words

MOST_PICTURES = 10
_SECONDS = 8
_DRAWN = 300 / 72  # pixels for a point of a PDF
_SIZE = 11.0  # points, of most of a page's type
_LIKE = 1.2  # how much larger type has to be that is not the same
_BOLD, _BOLD_ALONE = 1.18, 1.25  # how much thicker strokes are
_DOT, _RAISED = 0.4, 0.1  # of the size of type
_LEAST_SURE = 30
_SHORT = 3  # letters
_LINE = re.compile(r"bbox (\d+) \d+ (\d+) (\d+); baseline (-?[\d.]+) (-?[\d.]+);.*x_size ([\d.]+)")
_STROKE = re.compile("^\\|(?=$|['\u2019])")  # the letter I in type without serifs
_WORD = re.compile(r"bbox (\d+) (\d+) (\d+) (\d+); x_wconf (\d+)")


def picture_text(content: bytes) -> Extraction:
    """Paragraphs, headings and items of a picture, or of the pictures of a TIFF file.

    Raises:
        UnreadableFile: not a picture, damaged, without text, or Tesseract is not installed.
        LimitExceeded: it has more pixels than the limit.
    """
    pictures = pictures_of(content)
    text, _ = text_of(
        [list(lines_of_picture(one, page)) for page, one in enumerate(islice(pictures, MOST_PICTURES))]
    )
    if not text:
        raise UnreadableFile("No text was recognised in the picture.", "no_text")
    unread = f"Only the first {MOST_PICTURES} pictures were read." if next(pictures, None) else None
    return Extraction(text, unread=unread, recognised=True)


def pages_as_pictures(content: bytes, numbers: Sequence[int]) -> Iterator[Picture]:
    """Pages of a PDF as they are printed.

    Raises:
        UnreadableFile: one cannot be drawn; pypdfium2 or Tesseract is not installed.
    """
    try:
        import pypdfium2
    except ImportError:
        said = "Pages without text are drawn by pypdfium2, which is not installed: `pip install pypdfium2`."
        raise UnreadableFile(said, "not_installed") from None
    try:
        document = pypdfium2.PdfDocument(content)
        for number in numbers:
            yield _drawn(document[number])
    except pypdfium2.PdfiumError:
        raise UnreadableFile("A page of the PDF cannot be drawn.", "damaged") from None


def _drawn(page: Any) -> Picture:
    """A page of pypdfium2's."""
    width, height = page.get_size()
    drawn = page.render(scale=min(_DRAWN, (MOST_PIXELS / (width * height)) ** 0.5), grayscale=True)
    rows = memoryview(drawn.buffer).cast("B")
    file = b"P5 %d %d 255\n" % (drawn.width, drawn.height) + b"".join(
        rows[row * drawn.stride :][: drawn.width] for row in range(drawn.height)
    )
    return Picture("pixReadMem", file, len(file))


def lines_of_picture(picture: Picture, page: int) -> Iterator[Line]:
    """What a machine reads in a picture, in a few more CPU seconds than the file had.

    Raises:
        UnreadableFile: Tesseract is not installed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_CPU)
    if soft != resource.RLIM_INFINITY:
        with suppress(ValueError):  # the limit of all processes here is lower
            resource.setrlimit(resource.RLIMIT_CPU, (soft + _SECONDS, hard))
    lines = list(_read_lines(picture))
    drawing = Drawing()
    if lines:
        usual = median(piece.size for line in lines for piece, _ in line)
        stroke = median(stroke for line in lines for _, stroke in line)
        points = _SIZE / usual
        for line in lines:
            bold = _bold([(piece.text, thick / stroke) for piece, thick in line])
            for (piece, _), heavy in zip(line, bold, strict=True):
                if 1 / _LIKE < piece.size / usual < _LIKE:
                    piece.size = usual
                piece.x0, piece.x1, piece.y = piece.x0 * points, piece.x1 * points, piece.y * points
                piece.size, piece.look = piece.size * points, Look(heavy)
                drawing.pieces[0].append(piece)
    return lines_of(drawing, page)


def _read_lines(picture: Picture) -> Iterator[list[tuple[Piece, float]]]:
    """Words of lines of which the machine is sure enough, in pixels, and how thick their strokes are."""
    hocr, black = read_words(picture)
    thinner = Picture("pixErodeBrick", None, black.pixels, 2, 1)  # each row of black pixels shorter by one
    for line in () if hocr is None else hocr.iter("span"):
        place = _LINE.match(line.get("title", ""))
        if place is None:
            continue
        left, right, bottom, slope, offset, size = map(float, place.groups())
        base = bottom + offset + slope * (right - left) / 2
        words, certainties = list[tuple[Piece, float]](), []
        for word in line:
            text, box = "".join(word.itertext()).strip(), _WORD.match(word.get("title", ""))
            if text and box:
                *corners, certainty = map(int, box.groups())
                letters = black.black(*corners)
                stroke = letters / max(letters - thinner.black(*corners), 1) / size
                text = (
                    "\u2022" if not words and _is_dot(text, corners, base, size) else _STROKE.sub("I", text)
                )
                words.append((Piece(text, corners[0], corners[2], -base, size, Look(), True), stroke))
                certainties.append(certainty)
        if words and median(certainties) >= _LEAST_SURE:
            yield words


def _is_dot(text: str, corners: Sequence[int], base: float, size: float) -> bool:
    """Whether it is the picture before an item, for which the machine knows no character."""
    left, top, right, bottom = corners
    small = max(right - left, bottom - top) < _DOT * size
    return len(text) == 1 and small and bottom < base - _RAISED * size and bottom - top > 0.6 * (right - left)


def _bold(words: Sequence[tuple[str, float]]) -> Iterator[bool]:
    """Whether each word of a line is bold: beside bold ones sooner, a short one between them."""
    letters = [sum(map(str.isalpha, text)) for text, _ in words]
    heavy = [count >= _SHORT and weight > _BOLD for count, (_, weight) in zip(letters, words, strict=True)]
    around = zip([False, *heavy], [*heavy[1:], False], strict=False)
    for own, (before, after), count, (_, weight) in zip(heavy, around, letters, words, strict=True):
        if own:
            yield before or after or weight > _BOLD_ALONE
        else:
            yield before and after and (count < _SHORT or weight > 1)
