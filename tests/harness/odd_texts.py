"""Texts of characters that texts seldom have, from letters of every table to code points that are none."""

import random
import sys
import unicodedata
from collections.abc import Collection, Sequence
from functools import cache

from ttmark.detect_service.normalization import (
    letters_marked_below,
    look_alike_letters,
    styled_letters,
)

WORDS = ("the ", "cat ", "sat ", "on ", "a ", "mat, ", "12 ", "dogs. ", "In ", "Sanskrit ", "r ", "is ")
_UNASSIGNED = ("Cn", "Cs")
_LONGEST_RUN = 40


def _span(*ranges: tuple[int, int]) -> list[str]:
    return [chr(code) for first, last in ranges for code in range(first, last + 1)]


@cache
def assigned() -> list[str]:
    """Every code point that Python's Unicode data know, those of private use left out."""
    return [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) not in (*_UNASSIGNED, "Co")
    ]


@cache
def marks_of_each_class() -> list[str]:
    """A mark of each canonical combining class."""
    by_class: dict[int, str] = {}
    for character in assigned():
        if unicodedata.category(character)[0] == "M":
            by_class.setdefault(unicodedata.combining(character), character)
    return list(by_class.values())


@cache
def table_letters() -> list[str]:
    """The letters that some rule of the normalisation replaces."""
    return [*letters_marked_below(), *look_alike_letters(), *styled_letters(), *"ıȷçğöüşəÇĞÖÜŞƏİ"]


@cache
def kinds() -> dict[str, Sequence[str]]:
    """Characters by what is odd about them; the last two kinds are no characters."""
    return {
        "words": WORDS,
        "letters of the tables": table_letters(),
        "marks": marks_of_each_class(),
        "marks below": list("\u0323\u0324\u0325\u0331\u0327"),
        "Latin": _span((0xC0, 0x24F), (0x1E00, 0x1EFF)),
        "controls": _span((0, 0x1F), (0x7F, 0x9F)),
        "white space": [*filter(str.isspace, assigned()), *"  \t\n\r\u3164\uffa0\u2800"],
        "bidirectional": [
            *_span((0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)),
            *"\u061c\u05d0\u0627",
        ],
        "zero width": [*_span((0x200B, 0x200D), (0x2060, 0x2064)), *"\ufeff\u00ad\u034f\u180e"],
        "selectors": [*_span((0xFE00, 0xFE0F), (0xE0100, 0xE0110)), *"\u4e00\u1820\u180b\u20e3#1"],
        "flags": [*_span((0x1F1E6, 0x1F1FF), (0xE0061, 0xE0066)), "\U0001f3f4", "\U000e007f", "\u200d", "😀"],
        "Hangul": _span((0x1100, 0x11FF), (0xAC00, 0xAC20), (0xA960, 0xA97C)),
        "CJK compatibility": _span((0xF900, 0xFA6D), (0x3300, 0x33FF), (0x2F800, 0x2F81D)),
        "Arabic presentation": _span((0xFB50, 0xFBC1), (0xFDF0, 0xFDFC), (0xFE70, 0xFE74)),
        "other scripts": list("Приветעבריתالعربيةहिन्दीไทย日本語한국어ελληνικά"),
        "any": assigned(),
        "unassigned": [chr(0x0378), chr(0xE000), chr(0xFDD0), chr(0x1FFFE), chr(0x10FFFF), chr(0x2FE0)],
        "lone surrogates": _span((0xD800, 0xD803), (0xDC00, 0xDC03)),
    }


def odd_text(generator: random.Random, pieces: int, *, without: Collection[str] = ()) -> str:
    """A text of so many characters or runs of one character, mostly of three kinds and of none `without`."""
    chosen = ["words", *generator.choices([name for name in kinds() if name not in without], k=3)]
    text = []
    for _ in range(pieces):
        piece = generator.choice(kinds()[generator.choice(chosen)])
        text.append(piece * (generator.randrange(_LONGEST_RUN) if generator.random() < 0.02 else 1))
    return "".join(text)
