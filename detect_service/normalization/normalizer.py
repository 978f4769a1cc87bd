"""The readings of a text: as it was sent, without tricks and lines of a page, and without typography.

All rules are in `docs/spec.md`, section "Readings of a text". Each replaces a character by its plain form or
removes it, so positions map back.
"""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby, pairwise
from operator import ne
from typing import NamedTuple

import numpy as np
import regex  # type: ignore[import-untyped]
from confusable_homoglyphs import categories, confusables  # type: ignore[import-untyped]
from numpy.typing import NDArray

from ttmark.shared.schemas.detection.detect import ReadingName

Span = tuple[int, int]

# What several scripts and emoji are written with is left alone there: the first alternatives.
_INVISIBLE = regex.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"  # flags of England, Scotland, Wales
    "|\\p{Han}[\U000e0100-\U000e01ef]"
    "|\\p{Mongolian}[\u180b-\u180f]"
    "|[\u115f\u1160](?=\\p{Hangul})|(?<=\\p{Hangul})[\u115f\u1160]"
    "|(?P<stray>(?<=[\\x00-\\x7f\\p{Latin}\u0300-\u036f\u2010-\u2027])[\u200c\u200d\ufe00-\ufe0f]+(?!\u20e3)"
    "|[\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\ufff9-\ufffb]+"
    "|[\\p{Default_Ignorable_Code_Point}--[\u200c\u200d\ufe00-\ufe0f\u3164\uffa0]]+)",
    flags=regex.VERSION1,
)
_ODD_LINE_END = regex.compile("\r(?=\n)|[\r\x0b\x0c\x85\u2028\u2029]")
# Blank letters, too: Hangul fillers, and the empty Braille cell outside of Braille.
_ODD_SPACE = regex.compile(
    "[\\p{Zs}--\\x20]|[\u3164\uffa0]|(?<![\u2801-\u28ff])\u2800(?![\u2801-\u28ff])", flags=regex.VERSION1
)
# Indentation is seen; what stands before the end of a line is not, and hardly a second space in it. Two
# spaces there are Markdown's, whose line ends with them.
_NEEDLESS_SPACE = regex.compile(r"(?<![ \t])(?!(?<=\S)  \n)(?:([ \t]++)(?=\n)|(?<=\S)[ \t]([ \t]++))")
_DOUBLED_SPACE = re.compile(r"(?<=[\w,;])[ \t]([ \t]+)(?=\S)")
# Typography puts some in; where they are more than one blank in four it was no typography.
_NO_BREAK_SPACE = re.compile("[\u00a0\u202f]")


def odd_spaces(text: str) -> int:
    """How many spaces of a text are none that people or typography write."""
    odd, no_break = len(_ODD_SPACE.findall(text)), len(_NO_BREAK_SPACE.findall(text))
    return odd - no_break if 4 * no_break <= odd + text.count(" ") else odd


def _line_end(match: regex.Match[str]) -> str:
    return "\r" if match.string.startswith("\n", match.end()) and match[0] == "\r" else "\n"


_QUOTE = re.compile("^(?:> ?)+", re.MULTILINE)
_ITEM = re.compile(r"[-*+•>#|]|[0-9]+[.)]")
_FEWEST = 3
# No text for people has shorter lines on average, and the time that lines take is bounded.
_NARROWEST = 20


def quote_signs(text: str) -> list[Span]:
    """Spans of `>` at the beginnings of lines."""
    return [match.span() for match in _QUOTE.finditer(text)] if ">" in text else []


def indentation(text: str) -> list[Span]:
    """Spans of the spaces and tabs that all lines with words begin with, if there are several lines."""
    if " " not in text and "\t" not in text:
        return []
    lines = text.split("\n")
    blanks = [line[: _indented(line)] for line in lines if line.strip()]
    low, high = (min(blanks), max(blanks)) if len(blanks) > 1 else ("", "")
    common = next(
        (at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low)
    )
    starts = accumulate((len(line) + 1 for line in lines), initial=0)
    return [(at, at + common) for at, line in zip(starts, lines, strict=False) if common and line.strip()]


def broken_lines(text: str) -> list[Span]:
    """Spans of line breaks that only the width of a page made, if most of the breaks in paragraphs are such.

    A break, with the blanks around it, is one if the next word would have made its line the longest of the
    paragraph, and the next line goes on: it is no item of a list or heading, and as indented as the line, or
    further and the line begins an item.
    """
    breaks = text.count("\n")
    if breaks < _FEWEST or len(text) < _NARROWEST * breaks:
        return []
    spans: list[Span] = []
    kept = at = 0
    for blank, lines in groupby(text.split("\n"), lambda line: not line.strip()):
        paragraph = list(lines)
        longest = max(len(line.rstrip()) for line in paragraph)
        for line, following in pairwise(paragraph):
            end, words = len(line.rstrip()), following.lstrip()
            deeper = _indented(following) - _indented(line)
            at += len(line) + 1
            if blank or _ITEM.match(words) or deeper < 0 or (deeper and not _ITEM.match(line.lstrip())):
                continue
            if end + 1 + len(words.split(None, 1)[0]) > longest:
                spans.append((at - 1 - len(line) + end, at + _indented(following)))
            else:
                kept += 1
        at += len(paragraph[-1]) + 1
    return spans if len(spans) >= max(_FEWEST, kept) else []


def _indented(line: str) -> int:
    return len(line) - len(line.lstrip())


_KEYCAP = "\u20e3"
_BELOW = 220  # canonical combining class of marks below a letter
_RAW = regex.compile(r"([\x00-\x7f]|\p{Latin})(\p{M}+)")
_MARK = regex.compile(r"[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff]")


@cache
def letters_marked_below() -> dict[str, str]:
    """Letters with a mark below, each without it; its other marks stay."""
    table: dict[str, str] = {}
    for code in range(0x80, 0x2C80):
        letter = chr(code)
        base, *marks = list(unicodedata.normalize("NFD", letter))
        kept = [mark for mark in marks if unicodedata.combining(mark) != _BELOW]
        if base.isascii() and len(kept) < len(marks):
            table[letter] = unicodedata.normalize("NFC", base + "".join(kept))
    return table


def stray_marks(text: str, *, below: bool) -> list[Span]:
    """Where the stray marks of a text stand that are characters of their own.

    A mark on an ASCII character is stray where Unicode has no letter made of the two. Marks below are stray
    in all letters of a text that holds fewer marks of any other kind, as `below` says: Vietnamese and Yoruba
    hold more.
    """
    found: list[Span] = []
    for match in _RAW.finditer(text):
        letter = match[1]
        for place, mark in enumerate(match[2] if _KEYCAP not in match[2] else "", match.start(2)):
            with_mark = unicodedata.normalize("NFC", letter + mark)
            if below and unicodedata.combining(mark) == _BELOW:
                found.append((place, place + 1))
            elif len(with_mark) == 1:
                letter = with_mark
            elif letter.isascii():
                found.append((place, place + 1))
    return found


def _mostly_below(text: str) -> bool:
    """Whether most marks on the Latin letters of a text stand below them."""
    below = others = 0
    for character, times in Counter(text).items():
        # Those of the letter, or the character where it is a mark for Latin letters.
        marks = [] if character.isascii() else _MARK.findall(unicodedata.normalize("NFD", character))
        of_character = sum(unicodedata.combining(mark) == _BELOW for mark in marks)
        below += times * of_character
        others += times * (len(marks) - of_character)
    return below > others


_LIGATURES = "\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06"
# What programs put in place of what models write; a long dash is what models write.
_TYPOGRAPHY = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013", "-"),
        "\u2026": "...",
        **{letters: unicodedata.normalize("NFKC", letters) for letters in _LIGATURES},
    }
)

# Kinds of compatibility forms that are drawn like the plain letter; a superscript or a circled letter is not.
_STYLES = ("<font>", "<wide>", "<narrow>", "<compat>")
_DOTLESS = {"ı": "i", "ȷ": "j"}
# A text that holds one of these for each two dotless i is in Turkish or a relative of it.
_TURKISH = frozenset("çğöüşəÇĞÖÜŞƏİ")


@cache
def look_alike_letters() -> dict[str, str]:
    """Letters of any script that are drawn like an ASCII letter, each with that letter."""
    table: dict[str, str] = {}
    for character, looks_like in confusables.confusables_data.items():
        if len(character) != 1 or character.isascii() or not unicodedata.category(character).startswith("L"):
            continue
        if character in _DOTLESS:
            continue
        drawn_like = [entry["c"] for entry in looks_like]
        ascii_letters = [c for c in drawn_like if len(c) == 1 and c.isascii() and c.isalpha()]
        if ascii_letters and categories.alias(character) != "COMMON":
            # The data maps the capital iotas of all scripts to a small l, which they resemble as well.
            is_iota = ascii_letters[0] == "l" and character.isupper()
            table[character] = "I" if is_iota else ascii_letters[0]
    return table


@cache
def styled_letters() -> dict[str, str]:
    """Mathematical and full-width letters and digits, Roman numerals: each with its plain form."""
    table: dict[str, str] = {}
    for code in range(0x80, 0x20000):
        character = chr(code)
        decomposition = unicodedata.decomposition(character)
        if not decomposition or unicodedata.category(character)[0] not in "LN" or character in _LIGATURES:
            continue
        plain = unicodedata.normalize("NFKC", character)
        plain = _DOTLESS.get(plain, plain)
        styled = not decomposition.startswith("<") or decomposition.startswith(_STYLES)
        if styled and plain.isascii() and plain.isalnum():
            table[character] = plain
    return table


def dotless_letters(text: str) -> dict[str, str]:
    """The dotless letters of `text` with their dotted forms; none where its language writes them.

    Turkish and its relatives have dotless i beside other letters of their own, which are more frequent.
    """
    dotless = text.count("ı")
    if dotless and sum(map(text.count, _TURKISH)) * 2 >= dotless:
        return {"ȷ": "j"}
    return _DOTLESS


_CR = re.compile("\r")
# Most texts are ASCII and hold none of these; looking for them takes a hundredth of the time of the rules.
_PERHAPS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_WORD = re.compile(r"\w+")
_ASCII_LETTER = re.compile("[A-Za-z]")


class TrickCounts(NamedTuple):
    """How many characters of each kind a text holds."""

    invisible: int
    look_alikes: int
    white_space: int
    marks: int


@dataclass(frozen=True, slots=True, eq=False)
class NormalizedText:
    """A text in one of its readings.

    Attributes:
        counts: of what can hide words in the text as it was sent.
        origin: [characters of text] position of each in the original; None where they are the same.
    """

    text: str
    counts: TrickCounts
    origin: NDArray[np.int64] | None

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The half-open span of the original text that a span of `text` stands for.

        What stands for a part of a character has all of it if it is the first part, else nothing.
        """
        if self.origin is None or start >= end:
            return start, end
        first, last = int(self.origin[start]), int(self.origin[end - 1]) + 1
        return first + int(start > 0 and self.origin[start - 1] == first), last


class TextNormalizer:
    def __init__(self) -> None:
        self._look_alikes = str.maketrans(look_alike_letters())
        self._styled = str.maketrans(styled_letters())
        self._letters = frozenset(look_alike_letters()) | frozenset(styled_letters()) | {"ı", "ȷ"}
        self._below = str.maketrans(letters_marked_below())

    def readings(self, text: str) -> dict[ReadingName, NormalizedText]:
        """The text in each of its readings: with `unwrapped` what hides words and what a page did is undone,
        with `typography` also its quotation marks, hyphens, dots and ligatures."""
        draft, counts = _Draft(text), TrickCounts(0, 0, 0, 0)
        if not text.isascii() or _PERHAPS.search(text):
            draft, counts = self._plain(text)
        for spans in (indentation, quote_signs, indentation):
            draft.remove(spans(draft.text))
        draft.join(broken_lines(draft.text))
        white_space = counts.white_space + sum(map(len, _DOUBLED_SPACE.findall(draft.text)))
        counts = counts._replace(white_space=white_space)
        draft.remove([match.span(1 if match[1] else 2) for match in _NEEDLESS_SPACE.finditer(draft.text)])
        unwrapped = NormalizedText(draft.text, counts, draft.origin)
        draft.expand(_TYPOGRAPHY)
        typography = NormalizedText(draft.text, counts, draft.origin)
        as_sent = NormalizedText(text, counts, None)
        return {"as_sent": as_sent, "unwrapped": unwrapped, "typography": typography}

    def _plain(self, text: str) -> tuple["_Draft", TrickCounts]:
        draft = _Draft(str(_ODD_SPACE.sub(" ", _ODD_LINE_END.sub(_line_end, text))))
        draft.remove([match.span() for match in _CR.finditer(draft.text)])
        stray = (match.span() for match in _INVISIBLE.finditer(draft.text) if match["stray"])
        invisible = draft.remove(list(stray))
        marks = look_alikes = 0
        if not draft.text.isascii():
            below = _mostly_below(draft.text)
            marks = draft.remove(stray_marks(draft.text, below=below))
            if below:
                marks += draft.expand(self._below)
            look_alikes = self._undo_look_alikes(draft)
        return draft, TrickCounts(invisible, look_alikes, odd_spaces(text), marks)

    def _undo_look_alikes(self, draft: "_Draft") -> int:
        if self._letters.isdisjoint(draft.text):
            return 0
        dotless = str.maketrans(dotless_letters(draft.text))
        styled = draft.expand(self._styled)
        before = draft.text

        def plain_word(match: re.Match[str]) -> str:
            word = match[0]
            # A word of one foreign script is that script's; a mixture with ASCII letters is a disguise.
            if word.isascii() or not _ASCII_LETTER.search(word):
                return word
            return word.translate(self._look_alikes)

        draft.text = _WORD.sub(plain_word, before.translate(dotless))
        changed: int = sum(map(ne, before, draft.text))
        return styled + changed


class _Draft:
    """A text in the making, and where each of its characters comes from."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.origin: NDArray[np.int64] | None = None

    def remove(self, spans: list[Span]) -> int:
        """Removes disjoint spans; how many characters they hold."""
        if not spans:
            return 0
        keep = np.ones(len(self.text), dtype=np.bool_)
        pieces, end = [], 0
        for first, last in spans:
            keep[first:last] = False
            pieces.append(self.text[end:first])
            end = last
        pieces.append(self.text[end:])
        self.text = "".join(pieces)
        self._move(np.flatnonzero(keep))
        return int(keep.size - len(self.text))

    def join(self, spans: list[Span]) -> None:
        """Puts a space for each of disjoint spans."""
        letters = list(self.text) if spans else []
        for first, _ in spans:
            letters[first] = " "
        self.text = "".join(letters) or self.text
        self.remove([(first + 1, last) for first, last in spans])

    def expand(self, table: dict[int, str]) -> int:
        """Replaces characters, each by one or several; how many."""
        places = []
        if not self.text.isascii():
            places = [place for place, character in enumerate(self.text) if ord(character) in table]
        if places:
            sizes = np.ones(len(self.text), dtype=np.int64)
            sizes[places] = [len(table[ord(self.text[place])]) for place in places]
            self.text = self.text.translate(table)
            if len(self.text) != sizes.size:
                self._move(np.repeat(np.arange(sizes.size), sizes))
        return len(places)

    def _move(self, places: NDArray[np.int64]) -> None:
        self.origin = places if self.origin is None else self.origin[places]
