"""The text of a Word document: paragraphs and tables in order."""

import io
import zipfile
from collections.abc import Iterator

from docx import Document
from docx.document import Document as WordDocument
from docx.table import Table

from detect_service.extraction.errors import UnreadableFile

_LARGEST_UNPACKED = 64 * 2**20


def docx_text(content: bytes) -> str:
    """One line for each paragraph; cells of a table row are separated by tabs.

    Raises:
        UnreadableFile: not a docx file, damaged, or larger than 64 MiB when unpacked.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            # What is read of a member never exceeds the size that the directory declares.
            if sum(member.file_size for member in archive.infolist()) > _LARGEST_UNPACKED:
                raise UnreadableFile("The document is too large when unpacked.")
        document = Document(io.BytesIO(content))
        return "\n".join(_lines(document)).strip("\n")
    except UnreadableFile:
        raise
    except Exception:  # the library raises whatever a damaged part leads to
        raise UnreadableFile("The file is not a Word document (docx) that can be read.") from None


def _lines(document: WordDocument) -> Iterator[str]:
    for item in document.iter_inner_content():
        if isinstance(item, Table):
            for row in item.rows:
                yield "\t".join(cell.text for cell in row.cells)
        else:
            yield item.text
