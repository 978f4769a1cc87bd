"""Undoes tricks with characters that a reader does not see, and keeps the way back to the original text.

What counts as a trick is documented in `docs/detection.md`, section "Normalisation". All rules replace a
character by one character or remove it, so positions map back exactly.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from detect_service.normalization.look_alikes import foreign_look_alikes, styled_letters

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\U000e0000-\U000e0fff]"
    # Joiners and variation selectors are part of emoji and of several scripts: a trick only after ASCII.
    "|(?<=[\\x00-\\x7f])[\u200c\u200d\ufe00-\ufe0f]+(?!\u20e3)"
)
_ODD_SPACE = re.compile("[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
_ODD_LINE_END = re.compile("\r(?=\n)|\r|[\u2028\u2029\u0085]")
_WORD = re.compile(r"\w+")
_ASCII_LETTER = re.compile("[A-Za-z]")


class TrickCounts(NamedTuple):
    """How many characters of each kind a text holds."""

    invisible: int
    look_alikes: int
    white_space: int


@dataclass(frozen=True, slots=True, eq=False)
class NormalizedText:
    """A text without tricks.

    Attributes:
        text: what is left.
        counts: what was undone.
        origin: [characters of text] position of each in the original; None when nothing was removed.
    """

    text: str
    counts: TrickCounts
    origin: NDArray[np.int64] | None

    def original_span(self, start: int, end: int) -> tuple[int, int]:
        """The half-open span of the original text that a span of `text` stands for."""
        if self.origin is None or start >= end:
            return start, end
        return int(self.origin[start]), int(self.origin[end - 1]) + 1


class TextNormalizer:
    """Holds the tables of look-alike letters."""

    def __init__(self) -> None:
        foreign, styled = foreign_look_alikes(), styled_letters()
        self._foreign = str.maketrans(foreign)
        self._styled = str.maketrans(styled)
        self._letters = frozenset(foreign) | frozenset(styled)

    def normalize(self, text: str) -> NormalizedText:
        """The text without invisible characters, look-alike letters and odd white space."""
        if text.isascii() and "\r" not in text:
            return NormalizedText(text, TrickCounts(0, 0, 0), None)
        plain = _ODD_SPACE.sub(" ", _ODD_LINE_END.sub(_line_end, text))
        space_changes = _differences(text, plain)
        invisible = [match.span() for match in _INVISIBLE.finditer(plain)]
        line_ends = [(match.start(), match.end()) for match in re.finditer("\r", plain)]
        origin = _kept(len(plain), invisible + line_ends)
        if origin is not None:
            plain = _INVISIBLE.sub("", plain).replace("\r", "")
        readable = plain if self._letters.isdisjoint(plain) else _WORD.sub(self._plain_word, plain)
        return NormalizedText(
            readable,
            TrickCounts(
                invisible=sum(end - start for start, end in invisible),
                look_alikes=_differences(plain, readable),
                white_space=space_changes + len(line_ends),
            ),
            origin,
        )

    def _plain_word(self, match: re.Match[str]) -> str:
        word = match[0]
        if word.isascii():
            return word
        word = word.translate(self._styled)
        # A word of one foreign script is that script's; a mixture with ASCII letters is a disguise.
        return word.translate(self._foreign) if _ASCII_LETTER.search(word) else word


def _line_end(match: re.Match[str]) -> str:
    """A carriage return before a line feed stays for the moment: it is removed, not replaced."""
    return "\r" if match.string.startswith("\n", match.end()) else "\n"


def _kept(length: int, removed: list[tuple[int, int]]) -> NDArray[np.int64] | None:
    """Positions below `length` outside the `removed` spans; None when there are none."""
    if not removed:
        return None
    keep = np.ones(length, dtype=np.bool_)
    for start, end in removed:
        keep[start:end] = False
    return np.flatnonzero(keep)


def _differences(before: str, after: str) -> int:
    """Number of positions at which two texts of one length differ."""
    return 0 if before == after else sum(a != b for a, b in zip(before, after, strict=True))
