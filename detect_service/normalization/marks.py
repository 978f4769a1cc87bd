"""Combining marks that no language needs where they stand, such as dots below letters of an English text."""

import unicodedata
from collections import Counter
from functools import cache

import regex  # type: ignore[import-untyped]

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


class StrayMarks:
    """Decides for one text which marks are stray.

    A mark on an ASCII character is stray where Unicode has no letter made of the two. Marks below are stray
    in all letters of a text that holds fewer marks of any other kind: Vietnamese and Yoruba hold more.
    """

    def __init__(self, text: str) -> None:
        self.below = _mostly_below(text)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the stray marks stand that are characters of their own."""
        found: list[tuple[int, int]] = []
        for match in _RAW.finditer(text):
            if _KEYCAP not in match[2]:
                found += self._stray(match[1], match[2], match.start(2))
        return found

    def _stray(self, base: str, marks: str, start: int) -> list[tuple[int, int]]:
        letter, stray = base, []
        for place, mark in enumerate(marks, start):
            with_mark = unicodedata.normalize("NFC", letter + mark)
            if self.below and unicodedata.combining(mark) == _BELOW:
                stray.append((place, place + 1))
            elif len(with_mark) == 1:
                letter = with_mark
            elif letter.isascii():
                stray.append((place, place + 1))
        return stray


def _mostly_below(text: str) -> bool:
    """Whether most marks on the Latin letters of a text stand below them."""
    below = others = 0
    for character, times in Counter(text).items():
        marks = _marks_of(character)
        of_character = sum(unicodedata.combining(mark) == _BELOW for mark in marks)
        below += times * of_character
        others += times * (len(marks) - of_character)
    return below > others


def _marks_of(character: str) -> str:
    """The marks of a Latin letter, or the character where it is a mark for such letters."""
    if character.isascii():
        return ""
    return "".join(_MARK.findall(unicodedata.normalize("NFD", character)))
