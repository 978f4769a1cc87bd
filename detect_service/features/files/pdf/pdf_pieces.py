"""What a PDF draws: pieces of words, each with its place, size and look, and dots that may begin an item."""

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from pdfminer.casting import safe_float
from pdfminer.cmapdb import IdentityCMap, IdentityCMapByte
from pdfminer.pdfdevice import PDFTextDevice
from pdfminer.pdfdocument import PDFDocument
from pdfminer.pdffont import PDFCIDFont, PDFFont, PDFSimpleFont, PDFType3Font, PDFUnicodeNotDefined
from pdfminer.pdfinterp import PDFResourceManager, PDFTextState
from pdfminer.pdfpage import PDFPage
from pdfminer.pdftypes import PDFStream, dict_value, int_value, list_value, resolve1
from pdfminer.psparser import LIT, literal_name
from pdfminer.utils import (
    Matrix,
    Point,
    Rect,
    apply_matrix_pt,
    apply_matrix_rect,
    decode_text,
    mult_matrix,
)  # fmt: skip

from ttmark.detect_service.features.files.pdf.pdf_content import TextInterpreter


class TypeFace(NamedTuple):
    bold: bool = False
    italic: bool = False
    code: bool = False


@dataclass(slots=True, eq=False)
class Piece:
    """Letters of one look that touch each other.

    Attributes:
        x0: where it begins along its line, in points.
        y: of its base line, upwards.
        blank: whether the file has a blank behind it.
    """

    text: str
    x0: float
    x1: float
    y: float
    size: float
    look: TypeFace
    blank: bool = False


@dataclass(slots=True)
class Drawing:
    """A page.

    Attributes:
        pieces: by the direction in which they are read, in degrees; most pages have 0 alone. Places are as
            one sees them with the head turned.
        dots: centres of small filled shapes.
    """

    pieces: dict[int, list[Piece]] = field(default_factory=lambda: defaultdict(list))
    dots: list[Point] = field(default_factory=list)
    pictures: bool = False


UNKNOWN = "\ufffd"
"""In the place of a letter for which the file names no character."""
_TOUCHING = 0.12  # of the size of type; blanks are wider
_LEVEL = 0.02
_DOT = 2.0, 9.0  # points
_MOST_PARTS = 40
_BLANK = 32
_LIGATURES = frozenset("\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06")
_BOLD = re.compile("bold|black|heavy|demi(?!light)|medi", re.IGNORECASE)
_ITALIC = re.compile("italic|oblique|slanted", re.IGNORECASE)
_MONOSPACED = re.compile("mono|courier|consol|menlo|typewriter|cmtt|lettergothic", re.IGNORECASE)
_FIXED_PITCH, _SLANTED, _FORCED_BOLD = 1, 1 << 6, 1 << 18
_HEAVY = 600
_UNSEEN, _PASSWORD, _MENU = 2 | 32, 1 << 13, 1 << 17  # flags of what is not shown
_LEADING, _VALUE = 1.2, 11.0
_INHERITED = ("Resources", "MediaBox", "CropBox", "Rotate")


def pages_of(document: PDFDocument) -> Iterator[PDFPage]:
    """The pages in their order, one that is listed twice twice, whatever says that they are pages."""
    found = False
    todo: list[tuple[Any, dict[str, Any], frozenset[int]]] = [
        (document.catalog.get("Pages"), {}, frozenset())
    ]
    while todo:
        node, inherited, above = todo.pop()
        number = getattr(node, "objid", 0)
        attributes = resolve1(node)
        if number in above or not isinstance(attributes, dict):
            continue
        kids = resolve1(attributes.get("Kids"))
        if isinstance(kids, list):
            inherited = inherited | {name: attributes[name] for name in _INHERITED if name in attributes}
            todo += [(kid, inherited, above | {number}) for kid in reversed(kids)]
        else:
            found = True
            yield PDFPage(document, number, inherited | attributes, None)
    if not found:
        yield from PDFPage.create_pages(document)


def drawings(pages: Iterable[PDFPage]) -> Iterator[Drawing]:
    """What each page draws inside of what is shown of it, what was filled into forms included."""
    resources = _Fonts()
    device = _Device(resources)
    interpreter = TextInterpreter(resources, device)
    for page in pages:
        interpreter.process_page(page)
        for annotation in list_value(page.annots or []):
            shown = dict_value(annotation)
            if int_value(shown.get("F", 0)) & _UNSEEN:
                continue
            before = device.strings
            if (appearance := _appearance(shown)) is not None:
                stream, matrix = appearance
                own = dict_value(stream.get("Resources", {})) or page.resources
                interpreter.render_contents(own, [stream], mult_matrix(matrix, device.page_ctm))
            if device.strings == before:
                device.drawing.pieces[0] += _value(shown, device.page_ctm)
        yield device.drawing


def _appearance(shown: dict[str, Any]) -> tuple[PDFStream, Matrix] | None:
    """What a note or a field of a form shows, and where on the page (ISO 32000-1, 12.5.5)."""
    stream = resolve1(dict_value(shown.get("AP", {})).get("N"))
    if isinstance(stream, dict):
        stream = resolve1(stream.get(literal_name(shown.get("AS", LIT("Off")))))
    box = isinstance(stream, PDFStream) and [resolve1(place) for place in list_value(stream.get("BBox", []))]
    if not box:
        return None
    own = cast(Matrix, tuple(list_value(stream.get("Matrix", [1, 0, 0, 1, 0, 0]))))
    left, low, right, top = apply_matrix_rect(own, cast(Rect, tuple(box)))
    x, y, x1, y1 = _rectangle(shown)
    wide, high = abs(x1 - x) / (right - left or 1), abs(y1 - y) / (top - low or 1)
    fitted = (wide, 0, 0, high, min(x, x1) - left * wide, min(y, y1) - low * high)
    return stream, mult_matrix(own, fitted)


def _rectangle(shown: dict[str, Any]) -> Rect:
    return cast(Rect, tuple(resolve1(place) for place in list_value(shown["Rect"])))


def _value(shown: dict[str, Any], ctm: Matrix) -> Iterator[Piece]:
    """What was filled into a field that draws no text, or its list: readers of PDFs draw it themselves."""
    field = dict_value(shown.get("Parent", {})) | shown
    flags = int_value(field.get("Ff", 0))
    is_list = field.get("FT") is LIT("Ch") and not flags & _MENU
    if field.get("FT") not in (LIT("Tx"), LIT("Ch")) or flags & _PASSWORD:
        return
    values = list_value(field.get("Opt", [])) if is_list else [field.get("V")]
    said = [resolve1(value[-1] if isinstance(value, list) else value) for value in map(resolve1, values)]
    text = "\n".join(decode_text(value) for value in said if isinstance(value, bytes))
    left, low, right, top = apply_matrix_rect(ctm, _rectangle(shown))
    most = int((top - low) / _VALUE / _LEADING) if is_list else None
    lines = _shown(text).splitlines()[:most]
    size = min((top - low) / max(len(lines), 1) / _LEADING, _VALUE)
    for place, line in enumerate(lines):
        y = (low + top - size) / 2 + _LEADING * size * ((len(lines) - 1) / 2 - place)
        yield Piece(line, left, min(right, left + size * len(line) / 2), y, size, TypeFace())


class _Fonts(PDFResourceManager):
    """Fonts whose table of codes is in the file, which the library leaves empty: ToUnicode names codes."""

    def get_font(self, objid: object, spec: Any) -> PDFFont:
        font = super().get_font(objid, spec)
        own = resolve1(spec.get("Encoding"))
        if (
            isinstance(font, PDFCIDFont)
            and isinstance(own, PDFStream)
            and not getattr(font.cmap, "code2cid", True)
        ):
            short = re.search(rb"begincodespacerange\s*<[0-9A-Fa-f]{2}>", own.get_data())
            font.cmap = IdentityCMapByte() if short else IdentityCMap()
        return font


class _Device(PDFTextDevice):
    def __init__(self, resources: PDFResourceManager) -> None:
        super().__init__(resources)
        self.drawing = Drawing()
        self.strings = 0
        self._shown = (0.0, 0.0, 0.0, 0.0)
        self.page_ctm: Matrix = (1, 0, 0, 1, 0, 0)
        self._fonts: dict[PDFFont, _Letters] = {}

    def begin_page(self, page: PDFPage, ctm: Matrix) -> None:
        self.drawing = Drawing()
        self.page_ctm = ctm
        self._shown = apply_matrix_rect(ctm, page.cropbox)

    def render_image(self, name: str, stream: PDFStream) -> None:  # noqa: ARG002
        self.drawing.pictures = True

    def paint_path(
        self,
        graphicstate: Any,  # noqa: ARG002
        stroke: bool,  # noqa: ARG002
        fill: bool,
        evenodd: bool,  # noqa: ARG002
        path: Sequence[Any],
    ) -> None:
        if not fill or self.ctm is None or not 4 < len(path) < _MOST_PARTS:
            return
        points = [apply_matrix_pt(self.ctm, cast(Point, part[-2:])) for part in path if len(part) > 2]
        (left, right), (low, high) = ((min(places), max(places)) for places in zip(*points, strict=True))
        if _DOT[0] <= right - left <= _DOT[1] and abs(right - left - high + low) < (right - left) / 4:
            self.drawing.dots.append(((left + right) / 2, (low + high) / 2))

    def render_string(
        self,
        textstate: PDFTextState,
        seq: Iterable[Any],
        ncs: Any,  # noqa: ARG002
        graphicstate: Any,  # noqa: ARG002
    ) -> None:
        """Each letter where it is put (ISO 32000-1, 9.4.4); places are turned until the text lies level."""
        self.strings += 1
        font, size = textstate.font, textstate.fontsize
        if font is None or self.ctm is None:
            return
        a, b, c, d, e, f = mult_matrix(textstate.matrix, self.ctm)
        vertical, multibyte = font.is_vertical(), font.is_multibyte()
        scaling = 1.0 if vertical else textstate.scaling * 0.01
        wide, high = (-c, -d) if vertical else (a, b)
        angle = round(math.degrees(math.atan2(high, wide))) % 360
        cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
        letters = self._fonts.get(font) or self._fonts.setdefault(font, _Letters(font))
        em = letters.height * abs(size) * (math.hypot(a, b) if vertical else math.hypot(c, d)) or 1.0
        stretch = -math.hypot(c, d) if vertical else math.hypot(a, b)
        across, place = textstate.linematrix[:: 1 if vertical else -1]
        rise = 0.0 if vertical else textstate.rise
        pieces = self.drawing.pieces[angle]
        left, low, right, top = self._shown
        for part in seq:
            if isinstance(part, int | float):
                place -= part * 0.001 * size * scaling
            elif isinstance(part, bytes):
                for code in font.decode(part):
                    text, width = letters[code]
                    advance = width * size * scaling
                    tx, ty = (across, place) if vertical else (place, across + rise)
                    x, y = a * tx + c * ty + e, b * tx + d * ty + f
                    if left - em < x < right + em and low - em < y < top + em:
                        start = x * cosine + y * sine
                        letter = Piece(
                            text, start, start + advance * stretch, y * cosine - x * sine, em, letters.look
                        )
                        _put(pieces, letter)
                    place += advance + textstate.charspace * scaling
                    if code == _BLANK and not multibyte:
                        place += textstate.wordspace * scaling
        textstate.linematrix = (across, place) if vertical else (place, across)


def _put(pieces: list[Piece], letter: Piece) -> None:
    """Adds a letter to the piece that it touches, or as a piece of its own; a blank ends a piece."""
    last = pieces[-1] if pieces else None
    near = last is not None and abs(last.y - letter.y) < _LEVEL * letter.size
    if letter.text.isspace():
        if near and last is not None:
            last.blank = True
            last.text += " " * (letter.x1 <= letter.x0 and last.x1 <= last.x0)  # a font without widths
    elif (
        near
        and last is not None
        and not last.blank
        and last.look == letter.look
        and last.size == letter.size
        and -_TOUCHING < (letter.x0 - last.x1) / letter.size < _TOUCHING
    ):
        last.text += letter.text
        last.x1 = letter.x1
    elif letter.text:
        pieces.append(letter)


def _shown(text: str) -> str:
    return "".join(
        unicodedata.normalize("NFKC", letter) if letter in _LIGATURES else letter
        for letter in text
        if letter.isspace() or unicodedata.category(letter) != "Cc"
    )


class _Letters(dict[int, tuple[str, float]]):
    """The characters and widths of a font's codes; `height`: of the type, in text space of a size of 1."""

    def __init__(self, font: PDFFont) -> None:
        self._font = font
        name = str(font.fontname)
        weight = resolve1(font.descriptor.get("FontWeight"))
        heavy = isinstance(weight, int | float) and weight >= _HEAVY
        self.look = TypeFace(
            heavy or bool(font.flags & _FORCED_BOLD or _BOLD.search(name)),
            bool(font.italic_angle or font.flags & _SLANTED or _ITALIC.search(name)),
            bool(font.flags & _FIXED_PITCH or _MONOSPACED.search(name)),
        )
        self.height = abs(font.get_height()) or 1.0 if isinstance(font, PDFType3Font) else 1.0

    def __missing__(self, code: int) -> tuple[str, float]:
        try:
            text = self._font.to_unichr(code)
        except PDFUnicodeNotDefined:
            text = UNKNOWN
        text = _shown(text)
        width = self._font.char_width(code)
        if not width and isinstance(self._font, PDFSimpleFont):
            # Of the 14 fonts that every reader has, the library looks widths up by characters: not by "fi".
            width = (
                safe_float(self._font.widths.get(self._font.cid2unicode.get(code, ""))) or 0.0
            ) * self._font.hscale
        self[code] = found = text, width
        return found
