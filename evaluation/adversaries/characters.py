"""Edits of letters and signs: those that a reader does not see, and those that one does."""

from collections.abc import Callable

import numpy as np

from ttmark.evaluation.text_edits import Edit, Material, chosen_positions, words_of

ZERO_WIDTH, SOFT_HYPHEN, NO_BREAK = "\u200b", "\u00ad", "\u00a0"
_LOOK_ALIKES = str.maketrans("aeocpxyAEOCPXT", "аеосрхуАЕОСРХТ")


def in_words(change: Callable[[str], str]) -> Edit:
    """An edit that changes a share of the words, each with the white space before it."""

    def edit(text: str, share: float, _: Material, generator: np.random.Generator) -> str:
        words = words_of(text)
        for place in chosen_positions(len(words), share, generator):
            words[place] = change(words[place])
        return "".join(words)

    return edit


def parted(sign: str) -> Callable[[str], str]:
    """Puts a sign into the middle of a word."""

    def part(word: str) -> str:
        middle = len(word) - len(word.lstrip()) + (len(word.lstrip()) + 1) // 2
        return word[:middle] + sign + word[middle:]

    return part


def with_no_break_space(word: str) -> str:
    """The space before a word does not break; a word without one stays."""
    return NO_BREAK + word[1:] if word.startswith(" ") else word


def look_alike(word: str) -> str:
    """Latin letters are Cyrillic ones that look alike."""
    return word.translate(_LOOK_ALIKES)


def other_case(word: str) -> str:
    """The first letter is a capital, or no longer one."""
    bare = word.lstrip()
    return word[: len(word) - len(bare)] + bare[:1].swapcase() + bare[1:]


def mistyped(word: str) -> str:
    """Two letters inside the word are swapped; a short word has its last letter twice."""
    bare = word.lstrip()
    start = len(word) - len(bare) + 1
    if len(bare) < 4:
        return word + word[-1]
    return word[:start] + word[start + 1] + word[start] + word[start + 2 :]


INVISIBLE: dict[str, Edit] = {
    "zero-width spaces": in_words(parted(ZERO_WIDTH)),
    "soft hyphens": in_words(parted(SOFT_HYPHEN)),
    "no-break spaces": in_words(with_no_break_space),
    "look-alike letters": in_words(look_alike),
}
VISIBLE: dict[str, Edit] = {
    "case of the first letter": in_words(other_case),
    "typing errors": in_words(mistyped),
}
