"""The text of OpenDocument texts (odt)."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from lxml import etree

from ttmark.detect_service.features.files.office.list_numbers import LETTER_FORMATS
from ttmark.detect_service.features.files.text.extraction import Extraction, UnreadableFile
from ttmark.detect_service.features.files.text.layout import BULLET, Block, TextRun, markdown
from ttmark.detect_service.features.files.text.paragraphs import (
    MONOSPACED,
    Paragraphs,
    row,
    settled,
    twips,
    whole,
)
from ttmark.detect_service.features.files.text.zip_archive import open_archive

NAMES = "{urn:oasis:names:tc:opendocument:xmlns:"
TEXT, OFFICE, TABLE, STYLE, FO = (
    f"{NAMES}{name}:1.0}}" for name in ("text", "office", "table", "style", "xsl-fo-compatible")
)
_ID = "{http://www.w3.org/XML/1998/namespace}id"
_BOLD = frozenset({"bold", "600", "700", "800", "900"})
_CODE = frozenset({"Preformatted_20_Text", "Source_20_Text"})
_COUNTED = frozenset({f"{TEXT}list-level-style-number", f"{TEXT}outline-level-style"})
_DEEPEST = 10
Look = dict[str, Any]


class OdtStyles:
    """Styles by kind and name, each with what it takes over from the style below it; list styles by name.

    The style of the outline's numbers is the list style without a name.
    """

    def __init__(self, roots: list[etree._Element]) -> None:
        self._elements: dict[tuple[str, str], etree._Element] = {}
        self._looks: dict[tuple[str, str], Look] = {}
        self.lists: dict[str, dict[int, etree._Element]] = {}
        for root in roots:
            for each in root.iter(f"{STYLE}style", f"{STYLE}default-style"):
                self._elements[each.get(f"{STYLE}family", ""), each.get(f"{STYLE}name", "")] = each
            for each in root.iter(f"{TEXT}list-style", f"{TEXT}outline-style"):
                name = "" if each.tag == f"{TEXT}outline-style" else each.get(f"{STYLE}name", "")
                levels = each.iterchildren("*")
                self.lists[name] = {whole(level.get(f"{TEXT}level")): level for level in levels}

    def look(self, family: str, name: str) -> Look:
        """Of a paragraph (`paragraph`) or of characters (`text`)."""
        if (family, name) not in self._looks:
            self._looks[family, name] = {}  # a style below itself
            element = self._elements.get((family, name))
            if element is not None:
                below = element.get(f"{STYLE}parent-style-name", "")
                said = dict(self.look(family, below)) if name else {}
                for properties in element.iterchildren("*"):
                    said |= _look(properties)
                if name in _CODE:
                    said["mono"] = True
                if (numbered := element.get(f"{STYLE}list-style-name")) is not None:
                    said["list"] = numbered
                said["style"] = below or name
                self._looks[family, name] = said
        return self._looks[family, name]


def _look(properties: etree._Element) -> Look:
    said: Look = {}
    for name, value in properties.attrib.items():
        if name == f"{FO}font-weight":
            said["bold"] = value in _BOLD
        elif name == f"{FO}font-style":
            said["italic"] = value in ("italic", "oblique")
        elif name in (f"{STYLE}font-name", f"{FO}font-family"):
            said["mono"] = bool(MONOSPACED.search(value))
        elif name == f"{TEXT}display":
            said["hidden"] = value == "none"
        elif name in (f"{FO}margin-top", f"{FO}margin-bottom"):
            said["before" if name.endswith("top") else "after"] = twips(value)
        elif name == f"{STYLE}contextual-spacing":
            said["contextual"] = value == "true"
    return said


class ListNumbers:
    """Counts the items of a document's lists; items are asked about in their order."""

    def __init__(self, styles: OdtStyles) -> None:
        self._lists = styles.lists
        self._around: list[str | None] = []
        self._counts: dict[int, int] = {}
        self._ended: dict[str, dict[int, int]] = {}
        self._headings: dict[int, int] = {}
        self._marker = ""

    @contextmanager
    def inside(self, element: etree._Element, level: int) -> Iterator[None]:
        """While an element `text:list` is read, which stands at a level from 1 on."""
        name = element.get(f"{TEXT}style-name") or (self._around[-1] if self._around else None)
        if level == 1:
            goes_on = element.get(f"{TEXT}continue-list") or (
                f"style {name}" if element.get(f"{TEXT}continue-numbering") == "true" else ""
            )
            self._counts = dict(self._ended.get(goes_on, {}))
        self._around.append(name)
        yield
        self._around.pop()
        if level == 1:
            self._ended[f"style {name}"] = self._counts
            if identifier := element.get(_ID):
                self._ended[identifier] = self._counts

    def begin(self, item: etree._Element, level: int) -> None:
        """An item begins; `taken` gives its marker to the paragraph that is first in it."""
        self._marker = self._shown(
            self._lists.get(self._around[-1] or "", {}) if self._around else {},
            self._counts,
            level,
            item.get(f"{TEXT}start-value"),
        )

    def taken(self) -> str:
        marker, self._marker = self._marker, ""
        return marker

    def of_heading(self, element: etree._Element, level: int) -> str:
        """The number of a heading that stands in no list."""
        if element.get(f"{TEXT}is-list-header") == "true" or level not in self._lists.get("", {}):
            return ""
        return self._shown(self._lists[""], self._headings, level, element.get(f"{TEXT}start-value"))

    def _shown(
        self, levels: dict[int, etree._Element], counts: dict[int, int], level: int, start: str | None
    ) -> str:
        style = levels.get(min(level, _DEEPEST))
        if style is None or style.tag not in _COUNTED:
            return BULLET
        first = whole(style.get(f"{TEXT}start-value"), 1)
        for above in range(1, level):
            counts.setdefault(above, 1)
        counts[level] = whole(start, counts.get(level, first - 1) + 1)
        for deeper in [each for each in counts if each > level]:
            del counts[deeper]
        if not style.get(f"{STYLE}num-format"):
            return ""
        shown = range(max(1, level + 1 - whole(style.get(f"{TEXT}display-levels"), 1)), level + 1)
        numbers = (_numbered(levels.get(each), counts.get(each, 1)) for each in shown)
        around = (style.get(f"{STYLE}num-{side}", "") for side in ("prefix", "suffix"))
        return ".".join(numbers).join(around).strip()


def _numbered(style: etree._Element | None, number: int) -> str:
    form = "" if style is None else style.get(f"{STYLE}num-format", "")
    return LETTER_FORMATS.get(form, str)(number)


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
        reader = _Reader(OdtStyles(roots))
        blocks = list(reader.blocks(body))
        blocks += [block for note in reader.notes for block in reader.blocks(note)]
        return Extraction(markdown(settled(blocks)))


class _Reader:
    def __init__(self, styles: OdtStyles) -> None:
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
        runs = [] if look.get("hidden") else list(self._runs(element, TextRun(""), boxes))
        marker = self._numbers.taken()
        heading = whole(element.get(f"{TEXT}outline-level"), 1) if element.tag == f"{TEXT}h" else 0
        if heading and not marker:
            marker = self._numbers.of_heading(element, heading)
        yield self._made.block(runs, look, heading, marker, level)
        for box in boxes:
            yield from self.blocks(box, level)

    def _runs(self, element: etree._Element, look: TextRun, boxes: list[etree._Element]) -> Iterator[TextRun]:
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
                    yield from self._runs(child, TextRun("", bold, italic, code), boxes)
            elif child.tag not in _LEFT_OUT:
                yield from self._runs(child, look, boxes)
            yield replace(look, text=_collapsed(child.tail))


def _collapsed(text: str | None) -> str:
    """White space as pages show it; what is wider has elements of its own."""
    return _BLANKS.sub(" ", text) if text else ""
