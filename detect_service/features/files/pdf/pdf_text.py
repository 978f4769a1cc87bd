"""The text of a PDF, as its pages show it."""

import io
from collections.abc import Sequence
from itertools import islice

from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError, PDFPasswordIncorrect
from pdfminer.pdfparser import PDFParser

from ttmark.detect_service.features.files.pdf.pdf_blocks import text_of
from ttmark.detect_service.features.files.pdf.pdf_lines import Line, lines_of
from ttmark.detect_service.features.files.pdf.pdf_pieces import UNKNOWN, drawings, pages_of
from ttmark.detect_service.features.files.pdf.picture_text import (
    MOST_PICTURES,
    lines_of_picture,
    pages_as_pictures,
)
from ttmark.detect_service.features.files.text.extraction import Extraction, LimitExceeded, UnreadableFile

MOST_PAGES = 5_000


def pdf_text(content: bytes) -> Extraction:
    """Paragraphs, headings and items in the order in which one reads them, as a model writes them.

    Raises:
        UnreadableFile: not a PDF, damaged, protected by a password, or without text.
        LimitExceeded: more pages than the limit.
    """
    try:
        document = PDFDocument(PDFParser(io.BytesIO(content)))
        pages = list(islice(pages_of(document), MOST_PAGES + 1))
        if len(pages) > MOST_PAGES:
            raise LimitExceeded(f"The PDF has more pages than the limit of {MOST_PAGES}.", "pages")
        if not pages:
            raise UnreadableFile("The file is not a PDF that can be read.", "damaged")
        lines, pictures = [], []
        for number, drawing in enumerate(drawings(pages)):
            lines.append(list(lines_of(drawing, number)))
            if drawing.pictures and not _said(lines[-1]):
                pictures.append(number)
        if not any(map(_said, lines)):
            pictures = list(range(len(pages)))  # of letters that are drawn, say
        read = _read_pictures(content, pictures[:MOST_PICTURES], lines)
        text, begins = text_of(lines)
    except (UnreadableFile, MemoryError):
        raise
    except (PDFPasswordIncorrect, PDFEncryptionError):
        raise UnreadableFile("The PDF is protected by a password. Send it without.", "protected") from None
    except Exception:  # the library raises whatever a damaged part leads to
        raise UnreadableFile("The file is not a PDF that can be read.", "damaged") from None
    if not text.replace(UNKNOWN, "").strip():
        raise UnreadableFile("The PDF holds no text, and none was recognised in its pages.", "no_text")
    unknown = text.count(UNKNOWN)
    unread = []
    if len(pictures) > read:
        left = len(pictures) - read
        unread.append(f"{left} of {len(pages)} pages are pictures: their text, if any, is not read.")
    if unknown:
        unread.append(f"Letters without a character in the file: {unknown}.")
    return Extraction(text, unread=" ".join(unread) or None, pages=begins, recognised=read > 0)


def _said(lines: Sequence[Line]) -> bool:
    return any(line.text.strip(UNKNOWN) for line in lines)


def _read_pictures(content: bytes, numbers: list[int], lines: list[list[Line]]) -> int:
    """Puts what a machine reads in pages among their lines; in how many. Raises where there is no text."""
    read = 0
    try:
        for picture in pages_as_pictures(content, numbers):
            lines[numbers[read]] = list(lines_of_picture(picture, numbers[read]))
            read += 1
    except UnreadableFile:
        if not any(lines):
            raise
    return read
