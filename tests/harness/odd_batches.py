"""Detection requests about odd texts, and what their answers have to be."""

import json
import random
import re
import sys
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import Any

from ttmark.detect_service.normalization.normalizer import (
    letters_marked_below,
    look_alike_letters,
    styled_letters,
)
from ttmark.shared.schemas.detection.detect import MAX_DOCUMENTS

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


_MODES = ("", "/direct", "/aligned", "/localized")
_OWN_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "": [{}],
    "/direct": [{}, {"phase": 0}, {"phase": "any"}],
    "/aligned": [{}, {"beta": 2.0}],
    "/localized": [{}, {"method": "waterseeker"}],
}
# At a tenth chance finds passages, so that answers have places in texts.
_RATES = (0.1, 1e-3, 1e-5)
_PIECES = 120


@dataclass(frozen=True, slots=True)
class Batch:
    """One request; `strict_json`: no text of it holds half a surrogate pair."""

    path: str
    body: dict[str, Any]
    strict_json: bool = True

    @property
    def content(self) -> bytes:
        """As it is sent, in ASCII."""
        return json.dumps(self.body).encode()

    def complaint(self, status: int, content: bytes) -> str | None:
        """What is wrong with an answer: its status, a missing verdict, a place outside of the text."""
        if not self.strict_json:
            return None if status == 400 else f"{status} for half a surrogate pair"
        if status != 200:
            return f"{status}: {content[:300]!r}"
        results = json.loads(content)["results"]
        if len(results) != len(self.body["inputs"]):
            return f"{len(results)} results"
        for document, result in zip(self.body["inputs"], results, strict=True):
            if result["verdict"] == "not_examined":
                return f"not examined: {document}"
            spans = [*(result.get("segments") or ()), *(result.get("evidence") or ())]
            if any(not _within(span, document) for span in spans):
                return f"places outside of {document}"
        return None


def random_batch(generator: random.Random) -> Batch:
    """One to six documents, most of them texts, asked about in any way."""
    mode = generator.choice(_MODES)
    without = () if generator.random() < 0.03 else ("lone surrogates",)
    inputs: list[dict[str, Any]] = []
    for _ in range(generator.randint(1, 6)):
        if generator.random() < 0.1:
            inputs.append({"token_ids": generator.choices(range(256), k=generator.randrange(60))})
        else:
            inputs.append({"text": odd_text(generator, generator.randrange(_PIECES), without=without)})
    body = {
        "inputs": inputs,
        "fpr": generator.choice(_RATES),
        "normalize": generator.random() < 0.8,
        "evidence": generator.choice(["none", "blocks"]),
        **generator.choice(_OWN_OPTIONS[mode]),
    }
    # Two halves that happen to meet are a character.
    sent = json.dumps([document.get("text", "") for document in inputs])
    return Batch(f"/v1/detect{mode}", body, not re.search("[\ud800-\udfff]", "".join(json.loads(sent))))


def letter_batches(step: int = 1) -> Iterator[Batch]:
    """Every letter of every table by itself, and every assigned code point beside marks of each class."""
    yield from _in_batches([f"{letter} \u1ea1" for letter in table_letters()])
    marks, characters = marks_of_each_class(), assigned()[::step]
    beside = [
        "".join(f"x{character}{mark} a{mark}{character} " for mark in (marks * 2)[first : first + 4])
        for character, first in zip(characters, cycle(range(len(marks))))
    ]
    yield from _in_batches(["".join(beside[at : at + 8]) + "\u1ea1\u1eb9" for at in range(0, len(beside), 8)])


def _in_batches(texts: Sequence[str]) -> Iterator[Batch]:
    for number, first in enumerate(range(0, len(texts), MAX_DOCUMENTS)):
        inputs = [{"text": text} for text in texts[first : first + MAX_DOCUMENTS]]
        yield Batch(f"/v1/detect{_MODES[number % 4]}", {"inputs": inputs, "fpr": 0.1})


def _within(span: dict[str, Any], document: dict[str, Any]) -> bool:
    if "text" not in document:
        return span["start_char"] is None
    return bool(0 <= span["start_char"] <= span["end_char"] <= len(document["text"]))
