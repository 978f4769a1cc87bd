"""The text of a picture, as a machine reads it: its words are laid out as those of a PDF."""

import re
import resource
from collections.abc import Iterator, Sequence
from contextlib import suppress
from ctypes import CDLL, byref, c_float, c_int, c_size_t, c_void_p, string_at
from functools import cache
from itertools import islice
from statistics import median
from typing import Any

from lxml import etree

from ttmark.detect_service.features.files.pdf.pdf_blocks import text_of
from ttmark.detect_service.features.files.pdf.pdf_lines import Line, lines_of
from ttmark.detect_service.features.files.pdf.pdf_pieces import Drawing, Piece, TypeFace
from ttmark.detect_service.features.files.text.extraction import Extraction, LimitExceeded, UnreadableFile

LIBRARY = "libtesseract.so.5"
MOST_PIXELS = 36_000_000
_MISSING = "Pictures are read by Tesseract, which is not installed here: `apt-get install tesseract-ocr`."
_LANGUAGES = b"eng+deu+fra+spa+por"  # those that are not installed are passed over
_ONE_COLUMN = 4
_JPEG_PNG_WEBP, _TIFF = frozenset((2, 3, 15)), frozenset((4, 5, 6, 7, 8, 9, 10, 17))  # Leptonica's numbers
_RANKS = 0.005, 0.5, 0.995  # of pixels, from dark to light; letters are few
_SMALL, _LARGE = 1_500, 3_500  # pixels of the shorter side, where 10 point type is read worse
# Functions that answer with a pointer; the others, with a number or nothing.
_POINTERS = """
TessBaseAPICreate TessBaseAPIGetHOCRText TessBaseAPIGetThresholdedImage boxCreate pixConvertTo1Adaptive
pixConvertTo8 pixDeskew pixErodeBrick pixInvert pixOrientCorrect pixReadMem pixReadMemTiff pixRemoveAlpha
pixRotateOrth pixScale
"""


@cache
def _loaded() -> tuple[CDLL, c_void_p]:
    """The library, and its reader. Raises UnreadableFile: it is not installed."""
    try:
        library = CDLL(LIBRARY)
    except OSError:
        raise UnreadableFile(_MISSING, "not_installed") from None
    for name in _POINTERS.split():
        getattr(library, name).restype = c_void_p
    reader = c_void_p(library.TessBaseAPICreate())
    if library.TessBaseAPIInit3(reader, None, _LANGUAGES):
        raise UnreadableFile(_MISSING, "not_installed")
    library.TessBaseAPISetVariable(reader, b"thresholding_method", b"2")  # Sauvola's: of uneven light
    library.TessBaseAPISetPageSegMode(reader, _ONE_COLUMN)
    return library, reader


class Picture:
    """Pixels, of Leptonica. Raises UnreadableFile: what they were to be made of is damaged."""

    def __init__(self, function: str, *arguments: object) -> None:
        self.pixels = c_void_p()
        self.pixels.value = getattr(_loaded()[0], function)(*arguments)
        if not self.pixels:
            raise UnreadableFile("The file is not a picture that can be read.", "damaged")

    def __del__(self) -> None:
        if self.pixels:
            _loaded()[0].pixDestroy(byref(self.pixels))

    def made(self, function: str, *arguments: object) -> "Picture":
        """Another picture, by one of Leptonica's functions."""
        return Picture(function, self.pixels, *arguments)

    def black(self, left: int, top: int, right: int, bottom: int) -> int:
        """How many pixels of a part are black; the picture has to be in black and white."""
        box, count = c_void_p(_loaded()[0].boxCreate(left, top, right - left, bottom - top)), c_int()
        _loaded()[0].pixCountPixelsInRect(self.pixels, box, byref(count), None)
        _loaded()[0].boxDestroy(byref(box))
        return count.value


def pictures_of(content: bytes) -> Iterator[Picture]:
    """The picture of a PNG, JPEG or WebP file, or all those of a TIFF file.

    Raises:
        UnreadableFile: it is none of these, damaged, or Tesseract is not installed.
        LimitExceeded: its header says that it has more pixels than the limit; it is not decoded.
    """
    library, file = _loaded()[0], (content, c_size_t(len(content)))
    kind, width, height, *others = (c_int() for _ in range(6))
    sizes = [byref(one) for one in (width, height, *others)]
    unknown = library.pixReadHeaderMem(*file, byref(kind), *sizes)
    if unknown or kind.value not in _JPEG_PNG_WEBP | _TIFF:
        raise UnreadableFile(
            "The file is not a picture that can be read: png, jpeg, webp or tiff.", "damaged"
        )
    is_tiff, number = kind.value in _TIFF, 0
    while not unknown:
        if width.value * height.value > MOST_PIXELS:
            limit = MOST_PIXELS // 10**6
            raise LimitExceeded(f"The picture has more pixels than the limit of {limit} million.", "pixels")
        yield Picture("pixReadMemTiff", *file, number) if is_tiff else Picture("pixReadMem", *file)
        number += 1
        unknown = not is_tiff or library.readHeaderMemTiff(*file, number, *sizes, byref(kind), byref(kind))


def read_words(picture: Picture) -> tuple[etree._Element | None, Picture]:
    """What a machine reads in a picture that may be turned, askew, small, pale, or white on black.

    Returns:
        a page of hOCR (None: nothing), and the picture as it was read, upright and in black and white.
    """
    library, reader = _loaded()
    picture = picture.made("pixRemoveAlpha").made("pixConvertTo8", 0)
    greys = [c_int() for _ in _RANKS]
    for rank, grey in zip(_RANKS, greys, strict=True):
        library.pixGetRankValue(picture.pixels, 1, c_float(rank), byref(grey))
    darkest, usual, lightest = (grey.value for grey in greys)
    if lightest - usual > usual - darkest:
        picture = Picture("pixInvert", None, picture.pixels)
    turned = c_int()
    sure = byref(c_float())
    with suppress(UnreadableFile):  # there is nothing to tell it by
        black = picture.made("pixConvertTo1Adaptive")
        black.made("pixOrientCorrect", c_float(), c_float(), sure, sure, byref(turned), 0)
    picture = picture.made("pixRotateOrth", turned.value // 90).made("pixDeskew", 0)
    width, height = library.pixGetWidth(picture.pixels), library.pixGetHeight(picture.pixels)
    if min(width, height) > _LARGE:
        picture = picture.made("pixScale", c_float(0.5), c_float(0.5))
    elif min(width, height) < _SMALL and 4 * width * height <= MOST_PIXELS:
        picture = picture.made("pixScale", c_float(2), c_float(2))
    library.TessBaseAPISetImage2(reader, picture.pixels)
    text = c_void_p(library.TessBaseAPIGetHOCRText(reader, 0))
    black = Picture("TessBaseAPIGetThresholdedImage", reader)
    library.TessBaseAPIClear(reader)
    page = etree.fromstring(string_at(text)) if text else None
    library.TessDeleteText(text)
    return page, black


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
    """Pages of a PDF as they are printed. Raises UnreadableFile: not drawn, or a library is missing."""
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
    width, height = page.get_size()
    drawn = page.render(scale=min(_DRAWN, (MOST_PIXELS / (width * height)) ** 0.5), grayscale=True)
    rows = memoryview(drawn.buffer).cast("B")
    file = b"P5 %d %d 255\n" % (drawn.width, drawn.height) + b"".join(
        rows[row * drawn.stride :][: drawn.width] for row in range(drawn.height)
    )
    return Picture("pixReadMem", file, len(file))


def lines_of_picture(picture: Picture, page: int) -> Iterator[Line]:
    """What a machine reads in a picture, in a few more CPU seconds. Raises UnreadableFile: no Tesseract."""
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
                piece.size, piece.look = piece.size * points, TypeFace(heavy)
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
                words.append((Piece(text, corners[0], corners[2], -base, size, TypeFace(), True), stroke))
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
