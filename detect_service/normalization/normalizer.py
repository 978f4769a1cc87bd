"""Undoes tricks with characters and breaks of lines that a reader does not see, and keeps the way back.

What counts as a trick is documented in `docs/detection.md`, section "Normalisation". Every rule replaces a
character by its plain form or removes it, so positions map back.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.normalization.invisible import (
    Span,
    broken_lines,
    invisible_characters,
    needless_spaces,
    plain_white_space,
    quote_signs,
)
from ttmark.detect_service.normalization.look_alikes import (
    dotless_letters,
    look_alike_letters,
    styled_letters,
)
from ttmark.detect_service.normalization.marks import StrayMarks, letters_marked_below

_CR = re.compile("\r")
# Most texts are ASCII and hold none of these; looking for them takes a hundredth of the time of the rules.
_PERHAPS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|[ \t][ \t\n]")
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
    """A text without tricks.

    Attributes:
        text: what is left.
        counts: what was undone.
        origin: [characters of text] position of each in the original; None where they are the same.
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
        self._look_alikes = str.maketrans(look_alike_letters())
        self._styled = str.maketrans(styled_letters())
        self._letters = frozenset(look_alike_letters()) | frozenset(styled_letters()) | {"ı", "ȷ"}
        self._below = str.maketrans(letters_marked_below())

    def normalize(self, text: str) -> NormalizedText:
        """The text without invisible characters, look-alikes, stray marks, odd white space, broken lines."""
        draft, counts = _Draft(text), TrickCounts(0, 0, 0, 0)
        if not text.isascii() or _PERHAPS.search(text):
            draft, counts = self._plain(text)
        lines = draft.remove(quote_signs(draft.text)) + draft.join(broken_lines(draft.text))
        return NormalizedText(
            draft.text, counts._replace(white_space=counts.white_space + lines), draft.origin
        )

    def _plain(self, text: str) -> tuple["_Draft", TrickCounts]:
        plain = plain_white_space(text)
        white_space = _differences(text, plain)
        draft = _Draft(plain)
        white_space += draft.remove([match.span() for match in _CR.finditer(plain)])
        invisible = draft.remove(invisible_characters(draft.text))
        marks = look_alikes = 0
        if not draft.text.isascii():
            stray = StrayMarks(draft.text)
            marks = draft.remove(stray.spans(draft.text))
            if stray.below:
                marks += draft.expand(self._below)
            look_alikes = self._undo_look_alikes(draft)
        white_space += draft.remove(needless_spaces(draft.text))
        return draft, TrickCounts(invisible, look_alikes, white_space, marks)

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
        return styled + _differences(before, draft.text)


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

    def join(self, places: list[int]) -> int:
        """Puts spaces for the line breaks at these places; how many."""
        if places:
            letters = list(self.text)
            for place in places:
                letters[place] = " "
            self.text = "".join(letters)
        return len(places)

    def expand(self, table: dict[int, str]) -> int:
        """Replaces characters, each by one or several; how many."""
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


def _differences(before: str, after: str) -> int:
    """Number of positions at which two texts of one length differ."""
    return 0 if before == after else sum(a != b for a, b in zip(before, after, strict=True))
