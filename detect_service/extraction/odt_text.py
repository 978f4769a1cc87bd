"""The text of OpenDocument texts (odt)."""

import re
from collections.abc import Iterator
from dataclasses import replace

from lxml import etree

from ttmark.detect_service.extraction.extraction import Extraction, UnreadableFile
from ttmark.detect_service.extraction.layout import Block, Run, markdown
from ttmark.detect_service.extraction.odt_styles import NAMES, OFFICE, TABLE, TEXT, ListNumbers, Styles, whole
from ttmark.detect_service.extraction.paragraphs import Paragraphs, row, settled
from ttmark.detect_service.extraction.zip_archive import open_archive

_LEFT_OUT = frozenset(
    {
        *(f"{TEXT}{name}" for name in ("tracked-changes", "ruby-text", "number")),
        *(f"{OFFICE}annotation", f"{OFFICE}forms"),
        *(f"{NAMES}svg-compatible:1.0}}{name}" for name in ("title", "desc")),
    }
)
_PARAGRAPHS = frozenset({f"{TEXT}p", f"{TEXT}h"})
_WHITE_SPACE = {f"{TEXT}tab": "\t", f"{TEXT}line-break": "\n"}
_CELLS = frozenset({f"{TABLE}table-cell", f"{TABLE}covered-table-cell"})
_FRAME = f"{NAMES}drawing:1.0}}frame"
_BLANKS = re.compile(r"[ \t\r\n]+")
# One element may ask for any number of spaces.
_MOST_SPACES = 100


def odt_text(content: bytes) -> Extraction:
    """What the pages show: paragraphs, lists with their numbers, frames, tables, then notes.

    Raises:
        UnreadableFile: not an odt file, damaged, or protected by a password.
        LimitExceeded: too large when unpacked, or nested deeper than the limits.
    """
    wrong = UnreadableFile("The file is not an OpenDocument text (odt) that can be read.", "damaged")
    with open_archive(content, wrong) as archive:
        if b"manifest:encryption-data" in (archive.read("META-INF/manifest.xml") or b""):
            raise UnreadableFile("The document is protected by a password. Send it without.", "protected")
        document = archive.xml("content.xml")
        body = None if document is None else document.find(f"{OFFICE}body/{OFFICE}text")
        if body is None:
            raise wrong
        roots = [root for root in (archive.xml("styles.xml"), document) if root is not None]
        reader = _Reader(Styles(roots))
        blocks = list(reader.blocks(body))
        blocks += [block for note in reader.notes for block in reader.blocks(note)]
        return Extraction(markdown(settled(blocks)))


class _Reader:
    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self._numbers = ListNumbers(styles)
        self._made = Paragraphs()
        self.notes: list[etree._Element] = []

    def blocks(self, container: etree._Element, level: int = 0) -> Iterator[Block]:
        """The blocks of an element that stands in as many lists."""
        for element in container:
            if element.tag in _PARAGRAPHS:
                yield from self._paragraph(element, level)
            elif element.tag == f"{TEXT}list":
                with self._numbers.inside(element, level + 1):
                    yield from self.blocks(element, level + 1)
            elif element.tag in (f"{TEXT}list-item", f"{TEXT}list-header"):
                first = element[0] if len(element) else None
                if element.tag == f"{TEXT}list-item" and first is not None and first.tag in _PARAGRAPHS:
                    self._numbers.begin(element, level)
                yield from self.blocks(element, level)
            elif element.tag == f"{TABLE}table-row":
                yield from row([list(self.blocks(cell, level)) for cell in element if cell.tag in _CELLS])
            elif element.tag not in _LEFT_OUT:
                yield from self.blocks(element, level)

    def _paragraph(self, element: etree._Element, level: int) -> Iterator[Block]:
        look = self._styles.look("paragraph", element.get(f"{TEXT}style-name", ""))
        boxes: list[etree._Element] = []
        runs = [] if look.get("hidden") else list(self._runs(element, Run(""), boxes))
        marker = self._numbers.taken()
        heading = whole(element.get(f"{TEXT}outline-level"), 1) if element.tag == f"{TEXT}h" else 0
        if heading and not marker:
            marker = self._numbers.of_heading(element, heading)
        yield self._made.block(runs, look, heading, marker, level)
        for box in boxes:
            yield from self.blocks(box, level)

    def _runs(self, element: etree._Element, look: Run, boxes: list[etree._Element]) -> Iterator[Run]:
        yield replace(look, text=_collapsed(element.text))
        for child in element:
            if child.tag == _FRAME:
                boxes.append(child)
            elif child.tag == f"{TEXT}note":
                self.notes += child.iterchildren(f"{TEXT}note-body")
            elif child.tag == f"{TEXT}s":
                spaces = min(_MOST_SPACES, whole(child.get(f"{TEXT}c"), 1))
                yield replace(look, text=" " * spaces)
            elif child.tag in _WHITE_SPACE:
                yield replace(look, text=_WHITE_SPACE[child.tag])
            elif child.tag == f"{TEXT}span":
                said = self._styles.look("text", child.get(f"{TEXT}style-name", ""))
                bold, italic, code = (
                    said.get(name, before)
                    for name, before in (("bold", look.bold), ("italic", look.italic), ("mono", look.code))
                )
                if not said.get("hidden"):
                    yield from self._runs(child, Run("", bold, italic, code), boxes)
            elif child.tag not in _LEFT_OUT:
                yield from self._runs(child, look, boxes)
            yield replace(look, text=_collapsed(child.tail))


def _collapsed(text: str | None) -> str:
    """White space as pages show it; what is wider has elements of its own."""
    return _BLANKS.sub(" ", text) if text else ""
