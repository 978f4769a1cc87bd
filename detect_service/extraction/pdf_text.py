"""The text of a PDF, as its pages show it."""

import io
from itertools import accumulate, islice

from pdfminer.pdfdocument import PDFDocument, PDFEncryptionError, PDFPasswordIncorrect
from pdfminer.pdfparser import PDFParser

from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile
from ttmark.detect_service.extraction.layout import markdown
from ttmark.detect_service.extraction.pdf_blocks import PAGE, blocks_of
from ttmark.detect_service.extraction.pdf_lines import lines_of
from ttmark.detect_service.extraction.pdf_pieces import UNKNOWN, drawings, pages_of

MOST_PAGES = 5_000


def pdf_text(content: bytes) -> Extraction:
    """Paragraphs, headings and items in the order in which one reads them, as a model writes them.

    Raises:
        UnreadableFile: not a PDF, damaged, protected by a password, or without text (a scan).
        LimitExceeded: more pages than the limit.
    """
    try:
        document = PDFDocument(PDFParser(io.BytesIO(content)))
        pages = list(islice(pages_of(document), MOST_PAGES + 1))
        if len(pages) > MOST_PAGES:
            raise LimitExceeded(f"The PDF has more pages than the limit of {MOST_PAGES}.", "pages")
        if not pages:
            raise UnreadableFile("The file is not a PDF that can be read.", "damaged")
        lines, pictures = [], 0
        for number, drawing in enumerate(drawings(pages)):
            lines.append(list(lines_of(drawing, number)))
            pictures += drawing.pictures and not lines[-1]
        before, *texts = markdown(blocks_of(lines)).strip().split(PAGE)
        text = before + "".join(texts)
    except (UnreadableFile, MemoryError):
        raise
    except (PDFPasswordIncorrect, PDFEncryptionError):
        raise UnreadableFile("The PDF is protected by a password. Send it without.", "protected") from None
    except Exception:  # the library raises whatever a damaged part leads to
        raise UnreadableFile("The file is not a PDF that can be read.", "damaged") from None
    if not text.replace(UNKNOWN, "").strip():
        raise UnreadableFile(
            "The PDF holds no text: its pages may be pictures (a scan). Recognise its text (OCR) first.",
            "no_text",
        )
    unknown = text.count(UNKNOWN)
    unread = []
    if pictures:
        unread.append(f"{pictures} of {len(pages)} pages are pictures: their text, if any, is not read.")
    if unknown:
        unread.append(f"Letters without a character in the file: {unknown}.")
    begins = accumulate(map(len, texts[:-1]), initial=len(before))
    return Extraction(text, unread=" ".join(unread) or None, pages=tuple(begins))
