"""Tesseract in this process, by the C interfaces of its library and of Leptonica, which decodes pictures.

Debian's tesseract-ocr brings both, and mends them. Nothing is executed: a confined process opens the library
and its data under `/usr`, in one thread, within its own limits.
"""

from collections.abc import Iterator
from contextlib import suppress
from ctypes import CDLL, byref, c_float, c_int, c_size_t, c_void_p, string_at
from functools import cache

from lxml import etree

from ttmark.detect_service.extraction.extraction import LimitExceeded, UnreadableFile

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
    """The library, and its reader.

    Raises:
        UnreadableFile: it is not installed.
    """
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
    """Pixels, of Leptonica.

    Raises:
        UnreadableFile: there are none, since what they were to be made of is damaged.
    """

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
