"""The text of documents in Rich Text Format (rtf)."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from ttmark.detect_service.features.files.text.extraction import Extraction, UnreadableFile
from ttmark.detect_service.features.files.text.layout import BULLET, Block, TextRun, markdown
from ttmark.detect_service.features.files.text.paragraphs import (
    MONOSPACED,
    Paragraphs,
    row,
    settled,
    without_start,
)

_TOKEN = re.compile(
    rb"\\(?P<word>[A-Za-z]{1,32})(?P<number>-?[0-9]{1,10})? ?|\\'(?P<byte>[0-9A-Fa-f]{2})"
    rb"|\\(?P<sign>[^A-Za-z])|(?P<brace>[{}])|[\r\n\0]+|(?P<plain>[^\\{}\r\n\0]+)",
    re.S,
)
# Of the groups that nobody has to know, those with text that pages show.
_SHOWN_ANYWAY = frozenset({"shpinst", "ud", "listtext", "pntext"})
_NOT_SHOWN_WORDS = (
    "fonttbl colortbl stylesheet info pict header headerl headerr headerf footer footerl footerr footerf "
    "annotation fldinst objdata sp shprslt upr xe tc pntxta pntxtb nonshppict private"
)
_NOT_SHOWN = frozenset(_NOT_SHOWN_WORDS.split())
_CHARACTERS = {
    "tab": "\t",
    "line": "\n",
    "emdash": "\u2014",
    "endash": "\u2013",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
    "emspace": "\u2003",
    "enspace": "\u2002",
    "qmspace": "\u2005",
}
_SIGNS = {"~": "\xa0", "_": "\u2011", "{": "{", "}": "}", "\\": "\\", "\t": "\t"}
_CODE_PAGES = {"ansi": "cp1252", "mac": "mac_roman", "pc": "cp437", "pca": "cp850"}
_CHARSETS = {
    0: "cp1252",
    77: "mac_roman",
    128: "cp932",
    129: "cp949",
    130: "johab",
    134: "gb18030",
    136: "cp950",
    161: "cp1253",
    162: "cp1254",
    163: "cp1258",
    177: "cp1255",
    178: "cp1256",
    186: "cp1257",
    204: "cp1251",
    222: "cp874",
    238: "cp1250",
    254: "cp437",
}
_HEADING = re.compile(r"heading ([1-9])\b", re.I)
# As programs type them that know no lists.
_TYPED_MARKER = re.compile(r"\s{0,9}([0-9a-zA-Z]{1,4}[.)]|[\u2022\u2013\xb7*-])\t")


def rtf_text(content: bytes) -> Extraction:
    """What the pages show, changes accepted: paragraphs, numbered lists, emphasis, tables, then notes.

    Raises:
        UnreadableFile: not an rtf file, or damaged.
    """
    wrong = UnreadableFile(
        "The file is not a document in Rich Text Format (rtf) that can be read.", "damaged"
    )
    content = content.lstrip()
    if not content.startswith(rb"{\rtf"):
        raise wrong
    try:
        return Extraction(markdown(settled(_Reader().read(content))))
    except (ValueError, LookupError, OverflowError):
        raise wrong from None


@dataclass(frozen=True, slots=True)
class _State:
    """What holds within braces."""

    shown: bool = True
    bold: bool = False
    italic: bool = False
    gone: bool = False
    font: int = -1
    fallback: int = 1
    in_table: bool = False
    style: int = -1
    outline: int = 9
    left: int = 0
    before: int = 0
    after: int = 0
    place: str = ""


_CHANGES: Mapping[str, Callable[[_State, int | None], _State]] = {
    "b": lambda state, number: replace(state, bold=number != 0),
    "i": lambda state, number: replace(state, italic=number != 0),
    "v": lambda state, number: replace(state, gone=number != 0),
    "deleted": lambda state, number: replace(state, gone=number != 0),
    "plain": lambda state, _: replace(state, bold=False, italic=False, gone=False, font=-1),
    "f": lambda state, number: replace(state, font=number or 0),
    "uc": lambda state, number: replace(state, fallback=min(number or 0, 100)),
    "intbl": lambda state, _: replace(state, in_table=True),
    "s": lambda state, number: replace(state, style=number or 0),
    "outlinelevel": lambda state, number: replace(state, outline=number or 0),
    "li": lambda state, number: replace(state, left=number or 0),
    "sb": lambda state, number: replace(state, before=number or 0),
    "sa": lambda state, number: replace(state, after=number or 0),
    "pard": lambda state, _: replace(state, in_table=False, style=-1, outline=9, left=0, before=0, after=0),
}


class _Reader:
    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._notes: list[Block] = []
        self._cells: list[list[Block]] = []
        self._cell: list[Block] = []
        self._runs: list[TextRun] = []
        self._marker: list[str] = []
        self._bytes = bytearray()
        self._state = _State()
        self._code_page = "cp1252"
        self._charsets: dict[int, str] = {}
        self._mono: set[int] = set()
        self._headings: dict[int, int] = {}
        self._name: list[str] = []
        self._default_font = -1
        self._made = Paragraphs()
        self._indents: list[int] = []  # of the items around what comes next
        self._skip = 0  # characters that stand in for one that was read

    def read(self, content: bytes) -> list[Block]:
        states: list[_State] = []
        # Text boxes and notes that are open, and what was said around them.
        around: list[tuple[int, list[TextRun], list[Block]]] = []
        ignorable = first = False
        at = 0
        while found := _TOKEN.match(content, at):
            at = found.end()
            brace, word, sign = found["brace"], found["word"], found["sign"]
            if found["byte"] is None and found["plain"] is None:
                self._decode()
            if brace == b"{":
                states.append(self._state)
                first, ignorable, self._skip = True, False, 0
                continue
            if brace == b"}":
                if not states:
                    break
                self._ends()
                if around and around[-1][0] == len(states):
                    if self._runs:
                        self._paragraph()
                    _, self._runs, self._blocks = around.pop()
                self._state, self._skip = states.pop(), 0
            elif sign == b"*":
                ignorable = True
                continue
            elif word is not None:
                name, number = word.decode(), found["number"]
                if name == "bin":
                    at += max(0, int(number or 0))
                elif first:
                    self._begins(name, ignorable)
                    if name in ("shptxt", "footnote"):
                        around.append((len(states), self._runs, self._blocks))
                        self._runs = []
                    if name == "footnote":
                        self._blocks = self._notes
                        self._state = replace(self._state, in_table=False)
                self._word(name, None if number is None else int(number))
            elif sign is not None:
                if sign in b"\r\n":
                    self._word("par", None)
                elif (character := sign.decode("latin-1")) in _SIGNS:
                    self._say(_SIGNS[character])
            elif found["byte"] is not None:
                self._plain(bytes.fromhex(found["byte"].decode()))
            elif found["plain"] is not None:
                self._plain(found["plain"])
            first = ignorable = False
        self._decode()
        self._paragraph()
        return [*self._blocks, *self._cell, *self._notes]

    def _begins(self, name: str, ignorable: bool) -> None:
        """The first word of a group says what it is for."""
        if name in ("fonttbl", "stylesheet", "listtext", "pntext"):
            self._state = replace(self._state, place=name)
        if name == "ud":
            self._state = replace(self._state, shown=True)
        elif name in _NOT_SHOWN or (ignorable and name not in _SHOWN_ANYWAY):
            self._state = replace(self._state, shown=False)

    def _ends(self) -> None:
        name, self._name = "".join(self._name), []
        if self._state.place == "fonttbl" and MONOSPACED.search(name):
            self._mono.add(self._state.font)
        elif self._state.place == "stylesheet" and (heading := _HEADING.search(name)):
            self._headings[self._state.style] = int(heading[1]) - 1

    def _word(self, name: str, number: int | None) -> None:
        if change := _CHANGES.get(name):
            self._state = change(self._state, number)
        elif name in _CHARACTERS:
            if self._skip:
                self._skip -= 1
            else:
                self._say(_CHARACTERS[name])
        elif name == "u" and number is not None:
            self._say(chr(number % 0x10000 if abs(number) < 0x10000 else number))
            self._skip = self._state.fallback
        elif name in ("par", "sect", "page", "nestcell"):
            if self._state.shown:
                self._paragraph()
        elif name == "cell":
            self._state = replace(self._state, in_table=True)
            self._paragraph()
            self._cells.append(self._cell)
            self._cell = []
        elif name == "row":
            self._blocks += row(self._cells)
            self._cells = []
        elif name in _CODE_PAGES:
            self._code_page = _CODE_PAGES[name]
        elif name == "ansicpg" and number:
            self._code_page = {10000: "mac_roman", 65001: "utf-8"}.get(number, f"cp{number}")
        elif name == "fcharset" and self._state.place == "fonttbl":
            self._charsets[self._state.font] = _CHARSETS.get(number or 0, "")
        elif name == "deff":
            self._default_font = number or 0

    def _plain(self, said: bytes) -> None:
        skipped = min(self._skip, len(said))
        self._skip -= skipped
        self._bytes += said[skipped:]

    def _decode(self) -> None:
        if self._bytes:
            said, self._bytes = bytes(self._bytes), bytearray()
            font = self._state.font if self._state.font >= 0 else self._default_font
            page = self._charsets.get(font) or self._code_page
            self._say(said.decode(page, "replace"))

    def _say(self, text: str) -> None:
        state = self._state
        if state.place in ("fonttbl", "stylesheet"):
            self._name.append(text)
        elif state.shown and not state.gone:
            if state.place:
                self._marker.append(text)
            else:
                self._runs.append(TextRun(text, state.bold, state.italic, state.font in self._mono))

    def _paragraph(self) -> None:
        state, runs = self._state, _joined(self._runs)
        marker, self._runs, self._marker = "".join(self._marker).strip(), [], []
        text = "".join(run.text for run in runs)
        if not marker and (typed := _TYPED_MARKER.match(text)):
            marker, runs = typed[1], without_start(runs, typed.end())
        if len(marker) == 1 or not any(map(str.isalnum, marker)):
            marker = BULLET if marker else ""
        if state.in_table and all(run.bold for run in runs if run.text.strip()):
            runs = [replace(run, bold=False) for run in runs]  # so do headings of tables look
        heading = self._headings.get(state.style, state.outline) + 1
        if heading <= 9 or not marker:
            self._indents.clear()
        else:
            while self._indents and self._indents[-1] >= state.left:
                self._indents.pop()
            self._indents.append(state.left)
        look = {"style": str(state.style), "before": state.before, "after": state.after}
        block = self._made.block(runs, look, heading, marker, len(self._indents))
        (self._cell if state.in_table else self._blocks).append(block)


def _joined(runs: list[TextRun]) -> list[TextRun]:
    """Runs that look alike as one; halves of characters are put together."""
    joined = []
    for _, group in groupby(runs, lambda run: run.look):
        alike = list(group)
        text = "".join(run.text for run in alike)
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        joined.append(replace(alike[0], text=text))
    return joined
