"""The text of office documents: Word (docx), OpenDocument (odt), Rich Text Format (rtf)."""

import io
from collections.abc import Iterator, Mapping
from itertools import count

from docx import Document
from docx.blkcntnr import BlockItemContainer
from docx.document import Document as WordDocument
from docx.table import Table, _Cell
from lxml import etree
from striprtf.striprtf import rtf_to_text

from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile
from ttmark.detect_service.extraction.zip_archive import (
    check_archive,
    open_archive,
    parse_part,
    refused_limit,
)

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


_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_LEFT_OUT = frozenset({f"{_TEXT}tracked-changes", f"{_TEXT}note", f"{_OFFICE}annotation"})
_PARAGRAPHS = frozenset({f"{_TEXT}p", f"{_TEXT}h"})
_WHITE_SPACE: Mapping[object, str] = {f"{_TEXT}tab": "\t", f"{_TEXT}line-break": "\n"}
_CELLS = frozenset({f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"})
# One element may ask for any number of spaces.
_MOST_SPACES = 100


def odt_text(content: bytes) -> Extraction:
    """One line for each paragraph and heading; cells of a table row are separated by tabs.

    Raises:
        UnreadableFile: not an odt file, damaged, or protected by a password.
        LimitExceeded: too large when unpacked, or nested deeper than the limits.
    """
    wrong = UnreadableFile("The file is not an OpenDocument text (odt) that can be read.", "damaged")
    with open_archive(content, wrong) as archive:
        if b"manifest:encryption-data" in archive.read("META-INF/manifest.xml"):
            raise UnreadableFile("The document is protected by a password. Send it without.", "protected")
        root = parse_part(archive.read("content.xml"), wrong)
    body = root.find(f"{_OFFICE}body/{_OFFICE}text")
    if body is None:
        raise wrong
    try:
        return Extraction("\n".join(_lines(body)).strip("\n"))
    except ValueError:  # a number of spaces that is none
        raise wrong from None


def _lines(container: etree._Element) -> Iterator[str]:
    for element in container:
        if element.tag in _LEFT_OUT:
            continue
        if element.tag in _PARAGRAPHS:
            yield _written(element)
        elif element.tag == f"{_TABLE}table-row":
            yield "\t".join("\n".join(_lines(cell)) for cell in element if cell.tag in _CELLS)
        else:
            yield from _lines(element)


def _written(element: etree._Element) -> str:
    """What a paragraph says; what stands in a frame inside of it has a line of its own."""
    pieces = [element.text or ""]
    for child in element:
        if child.tag not in _LEFT_OUT:
            if child.tag == f"{_TEXT}s":
                pieces.append(" " * min(_MOST_SPACES, int(child.get(f"{_TEXT}c", "1"))))
            pieces.append(_WHITE_SPACE.get(child.tag, ""))
            pieces.append(_written(child) + ("\n" if child.tag in _PARAGRAPHS else ""))
        pieces.append(child.tail or "")
    return "".join(pieces)


def rtf_text(content: bytes) -> Extraction:
    """Paragraphs as lines, cells of a table row between bars, as the library `striprtf` reads them.

    Raises:
        UnreadableFile: not an rtf file, or damaged.
    """
    wrong = UnreadableFile(
        "The file is not a document in Rich Text Format (rtf) that can be read.", "damaged"
    )
    if not content.lstrip().startswith(rb"{\rtf"):
        raise wrong
    try:
        # All of it is ASCII; other characters are escapes, or bytes of the code page that the file names.
        return Extraction(rtf_to_text(content.decode("latin-1")).strip("\n"))
    except (ValueError, LookupError, OverflowError):
        raise wrong from None
