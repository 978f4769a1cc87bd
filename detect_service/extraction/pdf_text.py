"""The text of a PDF, page by page, in the order in which the library reads it."""

import io

from pypdf import PasswordType, PdfReader
from pypdf.errors import LimitReachedError

from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile

MOST_PAGES = 5_000


def pdf_text(content: bytes) -> Extraction:
    """The pages' texts, one below the other.

    Raises:
        UnreadableFile: not a PDF, damaged, protected by a password, or without text (a scan).
        LimitExceeded: more pages, or larger parts when unpacked, than the limits.
    """
    try:
        reader = PdfReader(io.BytesIO(content))
        # Many files have an owner's password only: anyone may read them.
        if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
            raise UnreadableFile("The PDF is protected by a password. Send it without.", "protected")
        if len(reader.pages) > MOST_PAGES:
            raise LimitExceeded(f"The PDF has more pages than the limit of {MOST_PAGES}.", "pages")
        text = "\n".join(page.extract_text() for page in reader.pages).strip()
    except (UnreadableFile, MemoryError):
        raise
    except LimitReachedError:
        raise LimitExceeded(
            "A part of the PDF is larger than the reader's limits, such as 75 MB when unpacked.", "unpacked"
        ) from None
    except Exception:  # the library raises whatever a damaged part leads to
        raise UnreadableFile("The file is not a PDF that can be read.", "damaged") from None
    if not text:
        raise UnreadableFile(
            "The PDF holds no text: its pages may be pictures (a scan). Recognise its text (OCR) first.",
            "no_text",
        )
    return Extraction(text)
