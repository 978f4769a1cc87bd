"""The text of Word documents (docx)."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from lxml import etree

from ttmark.detect_service.extraction.docx_styles import Numbering, Styles, W, number, value
from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile
from ttmark.detect_service.extraction.layout import Block, Run, markdown
from ttmark.detect_service.extraction.paragraphs import Paragraphs, row, settled
from ttmark.detect_service.extraction.zip_archive import Archive, open_archive

WIDEST_CELL = 1_000
DEEPEST_TABLE = 16
MOST_CELLS = 100_000
_OLDER_OR_PROTECTED = b"\xd0\xcf\x11\xe0"


def docx_text(content: bytes) -> Extraction:
    """What the pages show, changes accepted: paragraphs, numbered lists, text boxes, tables, then notes.

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
    wrong = UnreadableFile("The file is not a Word document (docx) that can be read.", "damaged")
    with open_archive(content, wrong) as archive:
        main = _main(archive)
        document, folder = archive.xml(main), posixpath.dirname(main)
        body = None if document is None else document.find(W + "body")
        if body is None:
            raise wrong
        styles, numbering = (archive.xml(f"{folder}/{name}.xml") for name in ("styles", "numbering"))
        reader = _Reader(Styles(styles), Numbering(numbering))
        blocks = list(reader.blocks(body))
        for name in ("footnotes", "endnotes"):
            notes = archive.xml(f"{folder}/{name}.xml")
            for note in notes if notes is not None else ():
                if not value(note, "type"):  # lines above notes have one
                    blocks += reader.blocks(note)
        return Extraction(markdown(settled(blocks)))


def _main(archive: Archive) -> str:
    """The name of the part that the document begins with."""
    relations = archive.xml("_rels/.rels")
    for each in relations if relations is not None else ():
        if each.get("Type", "").endswith("/officeDocument"):
            return each.get("Target", "")
    return "word/document.xml"


_CHANGED_AWAY = frozenset({W + name for name in ("del", "moveFrom")})
_AROUND_BLOCKS = ("sdt", "sdtContent", "ins", "moveTo", "customXml", "smartTag")
_AROUND = frozenset({W + name for name in _AROUND_BLOCKS})
_UNSAID = _CHANGED_AWAY | {W + name for name in ("pPr", "rPr", "rt", "sectPr", "sdtPr")}
_ALTERNATIVES = "{http://schemas.openxmlformats.org/markup-compatibility/2006}AlternateContent"
_FORMULA_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_CHARACTERS = {W + "tab": "\t", W + "ptab": "\t", W + "cr": "\n", W + "noBreakHyphen": "-"}


class _Reader:
    def __init__(self, styles: Styles, numbering: Numbering) -> None:
        self._styles, self._numbering = styles, numbering
        self._cells = count(1)
        self._made = Paragraphs()
        self._begun: list[Run] = []  # of a paragraph that the next one goes on with
        self._boxes: list[Block] = []

    def blocks(self, container: etree._Element, depth: int = 0) -> Iterator[Block]:
        for element in container:
            if element.tag == W + "p":
                yield from self._paragraph(element, depth)
            elif element.tag == W + "tbl":
                yield from self._table(element, depth + 1)
            elif element.tag == _ALTERNATIVES:
                for chosen in _chosen(element):
                    yield from self.blocks(chosen, depth)
            elif element.tag in _AROUND:
                yield from self.blocks(element, depth)

    def _table(self, table: etree._Element, depth: int) -> Iterator[Block]:
        if depth > DEEPEST_TABLE:
            raise LimitExceeded(
                f"The document's tables are nested deeper than the limit of {DEEPEST_TABLE}.", "nesting"
            )
        for line in _inside(table, W + "tr"):
            if line.find(f"{W}trPr/{W}del") is None:
                yield from row([self._cell(cell, depth) for cell in _inside(line, W + "tc")])

    def _cell(self, cell: etree._Element, depth: int) -> list[Block]:
        if next(self._cells) > MOST_CELLS:
            raise LimitExceeded(
                f"The document's tables have more cells than the limit of {MOST_CELLS}.", "cells"
            )
        if number(value(cell.find(f"{W}tcPr/{W}gridSpan"), "val")) > WIDEST_CELL:
            raise LimitExceeded(
                f"A cell of the document spans more columns than the limit of {WIDEST_CELL}.", "cells"
            )
        merged = cell.find(f"{W}tcPr/{W}vMerge")
        covered = merged is not None and value(merged, "val", "continue") == "continue"
        return [] if covered else list(self.blocks(cell, depth))

    def _paragraph(self, element: etree._Element, depth: int) -> Iterator[Block]:
        properties = element.find(W + "pPr")
        said = self._styles.paragraph(properties)
        boxes, self._boxes = self._boxes, []
        self._depth = depth
        runs = [*self._begun, *self._runs(element, Run(""))]
        inside, self._boxes = self._boxes, boxes
        mark_is_gone = properties is not None and properties.find(f"{W}rPr/{W}del") is not None
        if said.get("initial") or mark_is_gone:
            self._begun = runs
        else:
            self._begun = []
            marker, at = self._numbering.marker(said) or ("", -1)
            yield self._made.block(runs, said, said.get("outline", 9) + 1, marker, at + 1)
        yield from inside

    def _runs(self, container: etree._Element, look: Run) -> Iterator[Run]:
        for element in container:
            tag = element.tag
            if tag == W + "r":
                said = self._styles.characters(element.find(W + "rPr"))
                if not said.get("hidden"):
                    bold, italic, code = (bool(said.get(name)) for name in ("bold", "italic", "mono"))
                    yield from self._runs(element, Run("", bold, italic, code))
            elif tag in (W + "t", _FORMULA_TEXT):
                yield replace(look, text=(element.text or "").replace("\n", " "))
            elif tag in _CHARACTERS:
                yield replace(look, text=_CHARACTERS[tag])
            elif tag == W + "br":
                if value(element, "type", "textWrapping") == "textWrapping":
                    yield replace(look, text="\n")
            elif tag == W + "sym":
                yield replace(look, text=_symbol(value(element, "char")))
            elif tag == W + "txbxContent":
                self._boxes.extend(self.blocks(element, self._depth))
            elif tag == _ALTERNATIVES:
                for chosen in _chosen(element):
                    yield from self._runs(chosen, look)
            elif tag not in _UNSAID:
                yield from self._runs(element, look)


def _inside(element: etree._Element, tag: str) -> Iterator[etree._Element]:
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag in _AROUND:
            yield from _inside(child, tag)


def _chosen(alternatives: etree._Element) -> Iterator[etree._Element]:
    """Of what says the same in newer and older forms the first that says anything."""
    for each in alternatives:
        if isinstance(each.tag, str) and next(each.iter(W + "t"), None) is not None:
            yield each
            return


def _symbol(code: str) -> str:
    """A character by its number; one of a font's own, such as Wingdings, has no other name."""
    point = int(code, 16) if code and set(code) <= set("0123456789abcdefABCDEF") and len(code) <= 6 else 0
    return chr(point) if 0x20 <= point < 0xD800 else ""
