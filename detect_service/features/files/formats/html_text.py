"""The text of a web page: what a browser shows of it."""

import re
from dataclasses import dataclass, replace

from lxml import etree, html

from ttmark.detect_service.features.files.office.list_numbers import LETTER_FORMATS
from ttmark.detect_service.features.files.text.encodings import codec, decode
from ttmark.detect_service.features.files.text.extraction import Extraction, UnreadableFile
from ttmark.detect_service.features.files.text.layout import BULLET, Block, TextRun, markdown
from ttmark.detect_service.features.files.text.paragraphs import row, whole
from ttmark.detect_service.features.files.text.zip_archive import refused_limit

_LOOKED_AT = 1024
_CHARSET = re.compile(
    rb"<(?:meta|\?xml)\b[^>]{0,500}?\b(?:charset|encoding)\s?=\s?[\"']?([\w.:-]{1,40})", re.I
)


def declared_encoding(content: bytes) -> str | None:
    """Python's name of the encoding in the page's first 1,024 bytes; None: none that pages can have."""
    match = _CHARSET.search(content[:_LOOKED_AT])
    return codec(match[1].decode("ascii", "replace")) if match else None


# What stands behind them the parser would leave out, which no browser does.
_LAST_TAGS = re.compile(r"</(?:html|body)\s{0,9}>", re.I)


def html_text(content: bytes) -> Extraction:
    """Visible text, lists with their numbers and emphasis as models write it.

    Raises:
        UnreadableFile: nothing in it can be read, or the encoding cannot be told.
        LimitExceeded: nested deeper than 256 levels, or a single text or attribute of more than 10 MB.
    """
    decoded = decode(content, declared_encoding(content))
    parser = html.HTMLParser(encoding="utf-8", huge_tree=False)
    try:
        root = html.document_fromstring(_LAST_TAGS.sub("", decoded.text).encode("utf-8"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        _refuse_limits(parser)
        raise UnreadableFile("The file is not a web page that can be read.", "damaged") from None
    # The library stops at its limits and gives what it has: half a page is no answer.
    _refuse_limits(parser)
    return Extraction(markdown(Page().read(root)), decoded.encoding, unread=decoded.unread)


def _refuse_limits(parser: html.HTMLParser) -> None:
    for entry in parser.error_log:
        if (refused := refused_limit(entry.type, entry.message, "web page")) is not None:
            raise refused


_HIDDEN_TAGS = (
    "script style template noscript title svg iframe object canvas audio video datalist annotation noframes"
)
_HIDDEN = frozenset(_HIDDEN_TAGS.split())
_BLOCK_TAGS = (
    "address article aside blockquote body caption center dd details dialog dir div dl dt fieldset "
    "figcaption figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html legend li listing main menu "
    "nav ol optgroup option p plaintext pre search section summary table tbody td textarea "
    "tfoot th thead tr ul xmp"
)
_BLOCKS = frozenset(_BLOCK_TAGS.split())
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_LISTS = frozenset({"ul", "ol", "menu", "dir"})
_PREFORMATTED = frozenset({"pre", "textarea", "listing", "xmp", "plaintext"})
_BOLD, _ITALIC = frozenset({"b", "strong"}), frozenset({"i", "em", "cite", "dfn", "var"})
_CODE = frozenset({"code", "tt", "kbd", "samp"})
_BLANKS = re.compile(r"[ \t\r\n\f]+")
# Of the style attribute only what decides whether a page shows text at all, and with emphasis.
_STYLE = re.compile(
    r"(?P<hidden>display\s*:\s*none)|(?P<bold>font-weight\s*:\s*(?:bold|[6-9]00))"
    r"|(?P<light>font-weight\s*:\s*(?:normal|[1-5]00))|(?P<italic>font-style\s*:\s*italic)"
    r"|(?P<upright>font-style\s*:\s*normal)|(?P<kept>white-space\s*:\s*(?:pre|break-spaces))"
    r"|(?P<close>margin(?:-top|-bottom)?\s*:\s*0)|(?P<unmarked>list-style(?:-type)?\s*:\s*none)",
    re.I,
)
_LONGEST_STYLE = 2_000
_LANGUAGE = re.compile(r"(?:^|\s)(?:lang(?:uage)?-([\w+#-]{1,20})|sourceCode ([\w+#-]{1,20}))")


@dataclass(slots=True)
class _List:
    """A list that is being read; `number` is that of the next item, None: bullets."""

    number: int | None
    step: int = 1
    form: str = "1"
    marked: bool = True
    items: int = 0

    def marker(self, item: html.HtmlElement) -> str:
        self.items += 1
        if self.number is None:
            return BULLET if self.marked else ""
        number = self.number = whole(item.get("value"), self.number)
        self.number += self.step
        return f"{LETTER_FORMATS.get(item.get('type', self.form), str)(number)}." if self.marked else ""


@dataclass(frozen=True, slots=True)
class _State:
    """What holds inside of an element."""

    look: TextRun
    kept: bool = False
    quotes: int = 0
    heading: int = 0
    pre: bool = False


class Page:
    """Gathers the blocks of a page; its elements are walked through, so that none is too deep."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._outer: list[list[Block]] = []  # around the cells that are being read
        self._cells: list[list[list[Block]]] = []
        self._runs: list[TextRun] = []
        self._state = _State(TextRun(""))
        self._lists: list[_List] = []
        self._marker = ""
        self._gap: bool | None = None
        self._fence: str | None = None

    def read(self, root: html.HtmlElement) -> list[Block]:
        hidden: html.HtmlElement | None = None
        states: list[_State] = []
        for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
            if event == "start":
                if hidden is None:
                    states.append(self._state)
                    if self._starts(element):
                        self._say(element.text)
                    else:
                        hidden = element
                continue
            if event == "end" and hidden in (None, element):
                if hidden is None:
                    self._ends(element)
                hidden = None
                self._state = states.pop()
            if hidden is None:
                self._say(element.tail)
        self._flush()
        return self._blocks

    def _starts(self, element: html.HtmlElement) -> bool:
        """Begins an element; false: the page does not show it."""
        tag, state = element.tag, self._state
        said = {found.lastgroup for found in _STYLE.finditer(element.get("style", "")[:_LONGEST_STYLE])}
        if tag in _HIDDEN or "hidden" in said or element.get("hidden") is not None:
            return False
        if tag == "dialog" and element.get("open") is None:
            return False
        if tag == "br":
            self._line_end()
        look = replace(
            state.look,
            bold=(state.look.bold or tag in _BOLD or "bold" in said) and "light" not in said,
            italic=(state.look.italic or tag in _ITALIC or "italic" in said) and "upright" not in said,
            code=state.look.code or tag in _CODE,
        )
        state = replace(state, look=look, kept=state.kept or "kept" in said)
        if tag in _BLOCKS:
            if state.pre:
                self._new_line()
            else:
                self._flush()
                state = self._starts_block(element, state, said)
        self._state = state
        return True

    def _starts_block(self, element: html.HtmlElement, state: _State, said: set[str | None]) -> _State:
        tag = element.tag
        if tag in _LISTS:
            self._gap = not self._lists
            self._lists.append(_list_of(element, "unmarked" not in said))
        elif tag == "li":
            around = self._lists[-1] if self._lists else _List(None)
            if self._gap is None or around.items:
                self._gap = False
            self._marker = around.marker(element) if "unmarked" not in said else ""
        elif tag == "p" or tag in _HEADINGS:
            close = "close" in said or "Mso" in element.get("class", "")
            self._gap = None if close and not self._marker else not close
            state = replace(state, heading=_HEADINGS.get(tag, 0))
        elif tag == "dd":
            self._gap = False
        elif tag == "blockquote":
            state = replace(state, quotes=state.quotes + 1)
        elif tag in ("td", "th"):
            self._outer.append(self._blocks)
            self._blocks = []
        elif tag == "tr":
            self._cells.append([])
        elif tag in _PREFORMATTED:
            self._fence = _fence(element) if tag == "pre" else None
            state = replace(state, pre=True, kept=True)
        return state

    def _ends(self, element: html.HtmlElement) -> None:
        tag = element.tag
        if tag not in _BLOCKS:
            return
        if self._state.pre and tag not in _PREFORMATTED:
            self._new_line()
            return
        self._flush()
        if tag in _LISTS:
            self._lists.pop()
        elif tag in ("td", "th"):
            cell, self._blocks = self._blocks, self._outer.pop()
            if self._cells:
                self._cells[-1].append(cell)
            else:
                self._blocks += cell
        elif tag == "tr":
            self._blocks += row(self._cells.pop())
        elif tag == "li":
            self._marker = ""

    def _say(self, text: str | None) -> None:
        if not text:
            return
        state = self._state
        if not state.kept:
            text = _BLANKS.sub(" ", text)
            if text[0] == " " and (not self._runs or self._runs[-1].text[-1] in " \n"):
                text = text[1:]
        elif "\r" in text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        if text:
            self._runs.append(replace(state.look, text=text))

    def _line_end(self) -> None:
        if self._runs and not self._state.kept:
            last = self._runs[-1].text.rstrip(" ")
            self._runs[-1:] = [replace(self._runs[-1], text=last)] if last else []
        # No more than one empty line.
        if not (len(self._runs) > 1 and self._runs[-1].text == self._runs[-2].text == "\n"):
            self._runs.append(TextRun("\n"))

    def _new_line(self) -> None:
        if self._runs and not self._runs[-1].text.endswith("\n"):
            self._runs.append(TextRun("\n"))

    def _flush(self) -> None:
        runs, self._runs = self._runs, []
        if not runs or all(run.text == " " for run in runs):
            return
        state, level = self._state, len(self._lists)
        block = Block(runs=runs, quotes=state.quotes, gap=self._gap)
        if state.pre:
            block = replace(block, kind="pre", fence=self._fence)
        elif self._marker:
            block = replace(block, kind="item", marker=self._marker, level=max(level, 1))
        elif state.heading:
            block = replace(block, kind="heading", level=state.heading)
        elif level:
            block = replace(block, level=level)
        if block.text.strip():
            self._marker, self._gap = "", None
        self._blocks.append(block)


def _list_of(element: html.HtmlElement, marked: bool) -> _List:
    if element.tag != "ol":
        return _List(None, marked=marked)
    backwards = element.get("reversed") is not None
    first = sum(child.tag == "li" for child in element) if backwards else 1
    start = whole(element.get("start"), first)
    return _List(start, -1 if backwards else 1, element.get("type", "1"), marked)


def _fence(element: html.HtmlElement) -> str | None:
    """The language of an element with code, as far as it says so; None: it holds something else."""
    code = next(element.iter("code"), None)
    if code is None:
        return None
    found = _LANGUAGE.search(f"{code.get('class', '')} {element.get('class', '')}"[:_LONGEST_STYLE])
    return (found[1] or found[2]) if found else ""
