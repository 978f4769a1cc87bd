"""Removal by one who asks the detector: word after word is changed until nothing is found.

Each attack yields what its attacker would publish after 0, 1, 2, ... questions, and ends when the attacker is
done. All may change the same share of the words. An attacker who does not know yet that a text is clear fills
up with changes at random: nobody does worse than one who asks nothing.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ttmark.evaluation.adversaries.question import Question, word_heat
from ttmark.evaluation.edits import Material

MOST_CHANGED = 0.2
"""Share of the words that an attacker may change."""
LOG10_FPR = -5.0
HOTTEST = 2
"""Words that are changed between two looks at the heat."""

Words = list[str]
"""One for each word of the text, with the white space before it; an empty one was deleted."""


@dataclass(frozen=True, slots=True)
class Scrubber:
    """An attacker with a marked text.

    Attributes:
        words: the text, which is never changed in place.
        material: where other words come from.
    """

    question: Question
    words: Words
    material: Material
    generator: np.random.Generator

    @property
    def most(self) -> int:
        """Words that may be changed."""
        return round(MOST_CHANGED * len(self.words))

    def is_found(self, words: Sequence[str]) -> bool:
        """The verdict."""
        return self.question.log10_p("".join(words)) <= LOG10_FPR

    def changed(self, words: Sequence[str], place: int) -> Words:
        """Without the word at a place, or with another word there."""
        new = "" if self.generator.random() < 0.5 else self.material.run(1, self.generator)[0]
        return [*words[:place], new, *words[place + 1 :]]

    def untouched(self, words: Sequence[str]) -> list[int]:
        """Places of the words that are still the text's."""
        return [place for place, word in enumerate(words) if word == self.words[place]]

    def filled(self, words: Sequence[str]) -> Words:
        """With changes at random, up to as many as there may be."""
        left = self.untouched(words)
        free = self.most - (len(words) - len(left))
        filled = list(words)
        for place in self.generator.permutation(left)[: max(0, free)].tolist():
            filled = self.changed(filled, place)
        return filled


def without_asking(attacker: Scrubber) -> Iterator[Words]:
    """As many changes as there may be, at random."""
    yield attacker.filled(attacker.words)


def by_verdict(attacker: Scrubber) -> Iterator[Words]:
    """Changes at random until they are enough; then halves of them are taken back, quarters and so on."""
    cleared = attacker.filled(attacker.words)
    yield cleared
    while attacker.is_found(cleared):
        cleared = attacker.filled(attacker.words)
        yield cleared
    yield cleared  # the question that said so
    places = [place for place, word in enumerate(cleared) if word != attacker.words[place]]
    size = max(1, len(places) // 2)
    while size:
        for start in range(0, len(places), size):
            fewer = list(cleared)
            for place in places[start : start + size]:
                fewer[place] = attacker.words[place]
            if not attacker.is_found(fewer):
                cleared = fewer
            yield cleared
        places = [place for place in places if cleared[place] != attacker.words[place]]
        size //= 2


def by_p_value(attacker: Scrubber) -> Iterator[Words]:
    """Single changes at random; one that makes the p-value larger is kept."""
    words = list(attacker.words)
    yield attacker.filled(words)
    first = log10_p = attacker.question.log10_p("".join(words))
    while log10_p <= LOG10_FPR:
        yield attacker.filled(words)
        left = attacker.untouched(words)
        if len(words) - len(left) >= attacker.most:  # these changes were not enough: others
            words, log10_p, left = list(attacker.words), first, attacker.untouched(attacker.words)
        candidate = attacker.changed(words, left[int(attacker.generator.integers(len(left)))])
        asked = attacker.question.log10_p("".join(candidate))
        if asked > log10_p:
            words, log10_p = candidate, asked
    yield words


def by_heat(attacker: Scrubber) -> Iterator[Words]:
    """The words with the highest scores are changed, a few between two looks."""
    words = list(attacker.words)
    yield attacker.filled(words)
    while attacker.is_found(words):  # the same answer has the heat
        yield attacker.filled(words)
        left = attacker.untouched(words)
        if len(words) - len(left) >= attacker.most:
            words = list(attacker.words)
            continue
        heat = word_heat(attacker.question, words)
        for place in sorted(left, key=lambda place: -heat[place])[:HOTTEST]:
            words = attacker.changed(words, place)
    yield words


REMOVALS: Mapping[str, Callable[[Scrubber], Iterator[Words]]] = {
    "nothing": without_asking,
    "verdict": by_verdict,
    "p-value": by_p_value,
    "p-value and heat": by_heat,
}
"""By what the detector tells."""
