"""The text of Word documents (docx)."""

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import Any

from lxml import etree

from ttmark.detect_service.features.files.office.list_numbers import WORD_FORMATS
from ttmark.detect_service.features.files.text.extraction import Extraction, LimitExceeded, UnreadableFile
from ttmark.detect_service.features.files.text.layout import BULLET, Block, TextRun, markdown
from ttmark.detect_service.features.files.text.paragraphs import MONOSPACED, Paragraphs, row, settled, whole
from ttmark.detect_service.features.files.text.zip_archive import Archive, open_archive

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
Look = dict[str, Any]
"""Of a paragraph or of characters, by name; what is not said is not there."""

_HEADING = re.compile(r"(?:heading|title)\s*([1-9]?)$", re.I)
_LEVELS = 9
_NAMES = {"b": "bold", "i": "italic", "vanish": "hidden", "contextualSpacing": "contextual"}


def value(element: etree._Element | None, name: str, default: str = "") -> str:
    """An attribute of an element in the namespace of its own."""
    return default if element is None else element.get(W + name, default)


def look(properties: etree._Element | None) -> Look:
    """What a `w:pPr` or `w:rPr` says."""
    said: Look = {}
    for element in properties if properties is not None else ():
        match element.tag.removeprefix(W) if isinstance(element.tag, str) else "":
            case "b" | "i" | "vanish" | "contextualSpacing" as name:
                said[_NAMES[name]] = value(element, "val", "1") not in ("0", "false", "off")
            case "rFonts":
                font = value(element, "ascii") or value(element, "hAnsi")
                said["mono"] = bool(MONOSPACED.search(font))
            case "outlineLvl":
                said["outline"] = whole(value(element, "val"), _LEVELS)
            case "spacing":
                said |= {side: whole(text) for side in ("before", "after") if (text := value(element, side))}
            case "numPr":
                numbered = {name: element.find(W + name) for name in ("numId", "ilvl")}
                said |= {name: value(found, "val") for name, found in numbered.items() if found is not None}
            case "pStyle" | "rStyle":
                said["style"] = value(element, "val")
            case "framePr":
                said["initial"] = value(element, "dropCap", "none") != "none"
    return said


class DocxStyles:
    """Styles by their identifier, each with what it takes over from the style below it."""

    def __init__(self, root: etree._Element | None) -> None:
        self._elements: dict[str, etree._Element] = {}
        self._looks: dict[str, Look] = {}
        self._default: Look = {}
        self._normal = ""
        if root is None:
            return
        for element in root.iter(W + "pPrDefault", W + "rPrDefault"):
            for properties in element.iter(W + "pPr", W + "rPr"):
                self._default |= {k: v for k, v in look(properties).items() if k in ("before", "after")}
        for element in root.iterchildren(W + "style"):
            name = value(element, "styleId")
            self._elements[name] = element
            if value(element, "type") == "paragraph" and value(element, "default") in ("1", "true", "on"):
                self._normal = name

    def paragraph(self, properties: etree._Element | None) -> Look:
        """The look of a paragraph: its style's, and what it says of itself."""
        own = look(properties)
        own.setdefault("style", self._normal)
        return self._default | self.style(own["style"]) | own

    def characters(self, properties: etree._Element | None) -> Look:
        """The look of characters, without that of their paragraph."""
        own = look(properties)
        return self.style(own["style"]) | own if "style" in own else own

    def style(self, name: str) -> Look:
        if name not in self._looks:
            self._looks[name] = {}  # a style below itself
            if (element := self._elements.get(name)) is not None:
                said = dict(self.style(value(element.find(W + "basedOn"), "val")))
                own = look(element.find(W + "pPr"))
                # A level may be known by the style that is numbered by it.
                said |= own | look(element.find(W + "rPr")) | ({"numbered": name} if "numId" in own else {})
                title = value(element.find(W + "name"), "val")
                if heading := _HEADING.match(title):
                    said.setdefault("outline", int(heading[1] or 1) - 1)
                if title in ("Source Code", "HTML Preformatted", "Preformatted Text"):
                    said["mono"] = True
                self._looks[name] = said
        return self._looks[name]


class Numbering:
    """Counts the items of a document's lists; paragraphs are asked about in their order."""

    def __init__(self, root: etree._Element | None) -> None:
        self._lists: dict[str, etree._Element] = {}
        self._abstract: dict[str, str] = {}
        self._levels: dict[str, dict[int, etree._Element]] = {}
        self._starts: dict[tuple[str, int], int] = {}
        self._counts: dict[str, dict[int, int]] = defaultdict(dict)
        if root is None:
            return
        abstract = {value(each, "abstractNumId"): each for each in root.iterchildren(W + "abstractNum")}
        linked = {
            value(link, "val"): name
            for name, each in abstract.items()
            if (link := each.find(W + "styleLink")) is not None
        }
        levels = {name: _levels(each) for name, each in abstract.items()}
        for each in root.iterchildren(W + "num"):
            name, of = value(each, "numId"), value(each.find(W + "abstractNumId"), "val")
            if of not in abstract:
                continue
            if (link := abstract[of].find(W + "numStyleLink")) is not None:
                of = linked.get(value(link, "val"), of)
            self._abstract[name], self._levels[name] = of, dict(levels[of])
            for override in each.iterchildren(W + "lvlOverride"):
                self._levels[name] |= _levels(override)
                start = override.find(W + "startOverride")
                if start is not None:
                    self._starts[name, whole(value(override, "ilvl"))] = whole(value(start, "val"), 1)

    def marker(self, said: Look) -> tuple[str, int] | None:
        """An item's marker as the page shows it ("": it goes on) and its level from 0 on; None: no item."""
        name = said.get("numId", "0")
        levels = self._levels.get(name)
        if not levels:
            return None
        at = min(whole(said.get("ilvl", "")), _LEVELS)
        if "ilvl" not in said:
            styles = {value(each.find(W + "pStyle"), "val"): n for n, each in levels.items()}
            at = styles.get(said.get("numbered", ""), 0)
        level = levels.get(at)
        if level is None:
            return None
        pattern = value(level.find(W + "lvlText"), "val")
        if value(level.find(W + "numFmt"), "val") == "bullet":
            return BULLET if pattern.strip() else "", at
        counts = self._counts[self._abstract[name]]
        start = self._starts.pop((name, at), None)
        counts[at] = counts.get(at, _start(level) - 1) + 1 if start is None else start
        for deeper in [n for n in counts if n > at]:
            if value(levels[deeper].find(W + "lvlRestart") if deeper in levels else None, "val") != "0":
                del counts[deeper]
        plain = level.find(W + "isLgl") is not None

        def shown(found: re.Match[str]) -> str:
            each = int(found[1]) - 1
            return _shown(levels.get(each), counts, each, plain)

        return re.sub("%([1-9])", shown, pattern).strip(), at


def _levels(container: etree._Element) -> dict[int, etree._Element]:
    return {whole(value(each, "ilvl")): each for each in container.iterchildren(W + "lvl")}


def _start(level: etree._Element) -> int:
    return whole(value(level.find(W + "start"), "val"), 1)


def _shown(level: etree._Element | None, counts: dict[int, int], at: int, plain: bool) -> str:
    if level is None:
        return ""
    form = value(level.find(W + "numFmt"), "val")
    if form in ("none", "bullet"):
        return ""
    return WORD_FORMATS.get("decimal" if plain else form, str)(counts.get(at, _start(level)))


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
        reader = _Reader(DocxStyles(styles), Numbering(numbering))
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
    def __init__(self, styles: DocxStyles, numbering: Numbering) -> None:
        self._styles, self._numbering = styles, numbering
        self._cells = count(1)
        self._made = Paragraphs()
        self._begun: list[TextRun] = []  # of a paragraph that the next one goes on with
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
        if whole(value(cell.find(f"{W}tcPr/{W}gridSpan"), "val")) > WIDEST_CELL:
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
        runs = [*self._begun, *self._runs(element, TextRun(""))]
        inside, self._boxes = self._boxes, boxes
        mark_is_gone = properties is not None and properties.find(f"{W}rPr/{W}del") is not None
        if said.get("initial") or mark_is_gone:
            self._begun = runs
        else:
            self._begun = []
            marker, at = self._numbering.marker(said) or ("", -1)
            yield self._made.block(runs, said, said.get("outline", 9) + 1, marker, at + 1)
        yield from inside

    def _runs(self, container: etree._Element, look: TextRun) -> Iterator[TextRun]:
        for element in container:
            tag = element.tag
            if tag == W + "r":
                said = self._styles.characters(element.find(W + "rPr"))
                if not said.get("hidden"):
                    bold, italic, code = (bool(said.get(name)) for name in ("bold", "italic", "mono"))
                    yield from self._runs(element, TextRun("", bold, italic, code))
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
