"""Small changes that turn a text's meaning round: negations, other numbers, other names."""

import re

import numpy as np

from ttmark.evaluation.edits import words_of

_NEGATED = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "can",
        "could",
        "will",
        "would",
        "should",
        "may",
        "must",
        "has",
        "have",
        "had",
        "does",
        "did",
        "do",
    ]
)
_NAMES = ("Miller", "Berlin", "Chandra", "Oslo", "Fumiko", "Texas", "Novak", "Lima", "Acme", "Tuesday")
_NUMBER = re.compile(r"\d")
_ENDS = (".", "!", "?", ":")
_SIGNS = ".,;:!?\"'"


def falsified(text: str, changes: int, generator: np.random.Generator) -> tuple[str, int]:
    """The text with up to so many single words changed, as many as it offers, and how many those are."""
    words = words_of(text)
    places = [place for place in range(len(words)) if _can_be_falsified(words, place)]
    chosen = generator.permutation(places)[:changes].tolist()
    for place in chosen:
        words[place] = _other(words[place], generator)
    return "".join(words), len(chosen)


def _can_be_falsified(words: list[str], place: int) -> bool:
    word = words[place].strip()
    if word in _NEGATED:  # unless "not" follows, which can go
        return "".join(words[place + 1 : place + 2]).strip() != "not"
    return word == "not" or bool(_NUMBER.search(word)) or _is_name(words, place)


def _is_name(words: list[str], place: int) -> bool:
    """A capital inside a sentence."""
    word = words[place].strip().strip(_SIGNS)
    starts = place == 0 or words[place - 1].rstrip().endswith(_ENDS) or "\n" in words[place]
    return not starts and word[:1].isupper() and word.isalpha() and len(word) > 1


def _other(word: str, generator: np.random.Generator) -> str:
    bare = word.strip()
    if bare == "not":
        return ""
    if bare in _NEGATED:
        return word + " not"
    if _NUMBER.search(bare):
        step = int(generator.integers(1, 10))
        return _NUMBER.sub(lambda digit: str((int(digit[0]) + step) % 10), word)
    bare = bare.strip(_SIGNS)
    names = [name for name in _NAMES if name != bare]
    return word.replace(bare, names[int(generator.integers(len(names)))])
