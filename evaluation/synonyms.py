"""Words that WordNet holds for the same, put into a text."""

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttmark.evaluation.text_edits import Material, words_of

PARTS, SENSES = ("noun", "verb", "adj", "adv"), 2
"""Parts of speech, and senses of a word that count: those met most often."""
WORD = re.compile(r"(\s*)([a-z]{4,})([.,;:!?]*)")


@dataclass(frozen=True, slots=True)
class Synonyms:
    """Single words in small letters, by the word that they may stand for."""

    of: Mapping[str, list[str]]

    @classmethod
    def read(cls, folder: Path) -> "Synonyms":
        """Of WordNet's files `index.noun`, `data.noun`, ... (wndb(5WN))."""
        found: dict[str, list[str]] = defaultdict(list)
        for part in PARTS:
            words = {}
            for fields in _lines(folder / f"data.{part}"):
                written = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
                words[fields[0]] = [word for word in written if word.isalpha() and word.islower()]
            for fields in _lines(folder / f"index.{part}"):
                for sense in fields[6 + int(fields[3]) :][:SENSES]:
                    found[fields[0]] += [word for word in words[sense] if word != fields[0]]
        return cls(found)

    def put_into(self, text: str, share: float, _: Material, generator: np.random.Generator) -> str:
        """`share` of the words, or as many as have synonyms, become one of theirs."""
        words = words_of(text)
        known = {
            place: match
            for place, word in enumerate(words)
            if (match := WORD.fullmatch(word)) and self.of.get(match[2])
        }
        count = min(len(known), round(share * len(words)))
        for place in generator.permutation(list(known))[:count].tolist():
            match = known[place]
            words[place] = match[1] + str(generator.choice(self.of[match[2]])) + match[3]
        return "".join(words)


def _lines(file: Path) -> list[list[str]]:
    """Fields of each line but those of the licence, which begin with blanks."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if not line.startswith(" ")]
