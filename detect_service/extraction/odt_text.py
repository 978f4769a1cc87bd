"""The text of an OpenDocument text (odt): paragraphs and headings in order, tables row by row."""

from collections.abc import Iterator, Mapping

from lxml import etree

from ttmark.detect_service.extraction.archive import open_archive, parse_part
from ttmark.detect_service.extraction.extraction import Extraction, UnreadableFile

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
