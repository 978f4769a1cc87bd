"""What a Word document says of the look of its paragraphs: styles, and the numbers of its lists."""

import re
from collections import defaultdict
from typing import Any

from lxml import etree

from ttmark.detect_service.extraction.layout import BULLET
from ttmark.detect_service.extraction.list_numbers import WORD_FORMATS
from ttmark.detect_service.extraction.paragraphs import MONOSPACED

W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
Look = dict[str, Any]
"""Of a paragraph or of characters, by name; what is not said is not there."""

_HEADING = re.compile(r"(?:heading|title)\s*([1-9]?)$", re.I)
_LEVELS = 9
_NAMES = {"b": "bold", "i": "italic", "vanish": "hidden", "contextualSpacing": "contextual"}


def value(element: etree._Element | None, name: str, default: str = "") -> str:
    """An attribute of an element in the namespace of its own."""
    return default if element is None else element.get(W + name, default)


def number(text: str, default: int = 0) -> int:
    """A whole number; what is none counts as the default."""
    return int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else default


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
                said["outline"] = number(value(element, "val"), _LEVELS)
            case "spacing":
                said |= {side: number(text) for side in ("before", "after") if (text := value(element, side))}
            case "numPr":
                numbered = {name: element.find(W + name) for name in ("numId", "ilvl")}
                said |= {name: value(found, "val") for name, found in numbered.items() if found is not None}
            case "pStyle" | "rStyle":
                said["style"] = value(element, "val")
            case "framePr":
                said["initial"] = value(element, "dropCap", "none") != "none"
    return said


class Styles:
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
                    self._starts[name, number(value(override, "ilvl"))] = number(value(start, "val"), 1)

    def marker(self, said: Look) -> tuple[str, int] | None:
        """An item's marker as the page shows it ("": it goes on) and its level from 0 on; None: no item."""
        name = said.get("numId", "0")
        levels = self._levels.get(name)
        if not levels:
            return None
        at = min(number(said.get("ilvl", "")), _LEVELS)
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
    return {number(value(each, "ilvl")): each for each in container.iterchildren(W + "lvl")}


def _start(level: etree._Element) -> int:
    return number(value(level.find(W + "start"), "val"), 1)


def _shown(level: etree._Element | None, counts: dict[int, int], at: int, plain: bool) -> str:
    if level is None:
        return ""
    form = value(level.find(W + "numFmt"), "val")
    if form in ("none", "bullet"):
        return ""
    return WORD_FORMATS.get("decimal" if plain else form, str)(counts.get(at, _start(level)))
