"""The text of a Word document: paragraphs and tables in order."""

import io
from collections.abc import Iterator
from itertools import count

from docx import Document
from docx.blkcntnr import BlockItemContainer
from docx.document import Document as WordDocument
from docx.table import Table, _Cell
from lxml import etree

from ttmark.detect_service.extraction.archive import check_archive, refused_limit
from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile

WIDEST_CELL = 1_000
DEEPEST_TABLE = 16
MOST_CELLS = 100_000
_OLDER_OR_PROTECTED = b"\xd0\xcf\x11\xe0"


def docx_text(content: bytes) -> Extraction:
    """One line for each paragraph; cells of a table row are separated by tabs, a merged cell counts once.

    Raises:
        UnreadableFile: not a docx file, damaged, or protected by a password.
        LimitExceeded: too large when unpacked, or with more, wider or deeper tables than the limits.
    """
    if content.startswith(_OLDER_OR_PROTECTED):
        raise UnreadableFile(
            "The document is protected by a password or in Word's older format (doc). Save it as docx "
            "without a password.",
            "protected",
        )
    try:
        check_archive(content)
        document = Document(io.BytesIO(content))
        return Extraction("\n".join(_Lines().of(document)).strip("\n"))
    except (UnreadableFile, MemoryError):
        raise
    except etree.XMLSyntaxError as error:
        raise refused_limit(error) or _not_a_document() from None
    except Exception:  # the library raises whatever a damaged part leads to
        raise _not_a_document() from None


class _Lines:
    def __init__(self) -> None:
        self._cells = count(1)

    def of(self, container: WordDocument | BlockItemContainer, depth: int = 0) -> Iterator[str]:
        for item in container.iter_inner_content():
            if isinstance(item, Table):
                yield from self._rows(item, depth + 1)
            else:
                yield item.text

    def _rows(self, table: Table, depth: int) -> Iterator[str]:
        if depth > DEEPEST_TABLE:
            raise LimitExceeded(
                f"The document's tables are nested deeper than the limit of {DEEPEST_TABLE}.", "nesting"
            )
        # The library's own cells repeat a merged one wherever it covers: gigabytes out of kilobytes.
        for row in table._tbl.tr_lst:
            cells = []
            for cell in row.tc_lst:
                if next(self._cells) > MOST_CELLS:
                    raise LimitExceeded(
                        f"The document's tables have more cells than the limit of {MOST_CELLS}.", "cells"
                    )
                if cell.grid_span > WIDEST_CELL:
                    raise LimitExceeded(
                        f"A cell of the document spans more columns than the limit of {WIDEST_CELL}.", "cells"
                    )
                covered = cell.vMerge == "continue"
                cells.append("" if covered else "\n".join(self.of(_Cell(cell, table), depth)))
            yield "\t".join(cells)


def _not_a_document() -> UnreadableFile:
    return UnreadableFile("The file is not a Word document (docx) that can be read.", "damaged")
