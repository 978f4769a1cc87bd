"""Forgery by one who asks the detector: words of a text without a mark become others until it is found.

Each attack yields what its attacker would publish after 0, 1, 2, ... questions. New words come from other
unmarked texts and fit no sentence: what is measured is the detector, not the prose.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from ttmark.evaluation.adversaries.question import Question, word_heat
from ttmark.evaluation.adversaries.removing import Words
from ttmark.evaluation.edits import Material

RATES = (-2.0, -3.0, -5.0)
"""log10 of the false positive rates at which verdicts are given."""
AT_ONCE = 4
"""Words that are changed between two verdicts, once one was positive."""
APART = 6
"""Words between two that are changed at once where heat tells which of them helped."""


@dataclass(frozen=True, slots=True)
class Counterfeiter:
    """An attacker with a text that has no mark."""

    question: Question
    words: Words
    material: Material
    generator: np.random.Generator

    def log10_p(self, words: Words) -> float:
        """What the detector says."""
        return self.question.log10_p("".join(words))

    def changed(self, words: Words, count: int) -> Words:
        """With other words at so many places."""
        changed = list(words)
        for place in self.generator.choice(len(words), size=min(count, len(words)), replace=False).tolist():
            changed[place] = self.material.run(1, self.generator)[0]
        return changed


def without_asking(attacker: Counterfeiter) -> Iterator[Words]:
    """The text as it is: nothing says which words are better."""
    yield attacker.words


def by_verdict(attacker: Counterfeiter) -> Iterator[Words]:
    """What is found at the coarsest rate is held to the next finer one, a few words changed each time.

    Until something is found all words are drawn anew.
    """
    words, rates = attacker.words, list(RATES)
    yield words
    while rates:
        drawn = len(words) if len(rates) == len(RATES) else AT_ONCE
        candidate = attacker.changed(words, drawn)
        if attacker.log10_p(candidate) <= rates[0]:
            words, rates = candidate, rates[1:]
        yield words


def by_p_value(attacker: Counterfeiter) -> Iterator[Words]:
    """Single changes; one that does not make the p-value larger is kept."""
    words = attacker.words
    yield words
    log10_p = attacker.log10_p(words)
    while log10_p > RATES[-1]:
        yield words
        candidate = attacker.changed(words, 1)
        asked = attacker.log10_p(candidate)
        if asked <= log10_p:
            words, log10_p = candidate, asked
    yield words


def by_heat(attacker: Counterfeiter) -> Iterator[Words]:
    """Many changes at once, far apart: of each the scores around it say whether it helped."""
    words = list(attacker.words)
    yield words
    heat = word_heat(attacker.question, words)
    while True:
        yield words
        start = int(attacker.generator.integers(APART))
        candidate = list(words)
        places = range(start, len(words), APART)
        for place in places:
            candidate[place] = attacker.material.run(1, attacker.generator)[0]
        asked = word_heat(attacker.question, candidate)
        for place in places:
            around = slice(max(0, place - 1), place + APART - 1)
            if asked[around].sum() > heat[around].sum():
                words = [*words[:place], candidate[place], *words[place + 1 :]]
                heat[around] = asked[around]


FORGERIES: Mapping[str, Callable[[Counterfeiter], Iterator[Words]]] = {
    "nothing": without_asking,
    "verdict": by_verdict,
    "p-value": by_p_value,
    "p-value and heat": by_heat,
}
"""By what the detector tells."""
