"""Parts of speech by lists and endings, and edits that exchange words for others of their part of speech.

A list of function words and the endings of English are enough to exchange like for like. A trained tagger
would be one more model to download, and a mark does not depend on its last percent.
"""

from collections import defaultdict
from collections.abc import Sequence
from enum import StrEnum

import numpy as np

from ttmark.evaluation.edits import Edit, Material, words_of

_FUNCTION_WORDS = frozenset(
    """
    a an the this that these those my your his her its our their some any no each every all both either
    neither i you he she it we they me him us them who whom whose which what and or but nor so yet for
    of in on at by to from with without into onto over under above below between among through during
    before after about against across along around behind beside beyond near off out up down if because
    although though while when where until unless since as than then is are was were be been being am do
    does did have has had can could will would shall should may might must not there here also only very
    too just more most less least such other
    """.split()  # noqa: SIM905 - a list of one word a line would hide the rest of the file
)
_DESCRIBING = (
    "ly",
    "ous",
    "ful",
    "able",
    "ible",
    "al",
    "ive",
    "ic",
    "less",
    "ish",
    "est",
    "ary",
    "ant",
    "ent",
)
_ACTING = ("ed", "ing", "ize", "ise", "ify", "ates", "izes")
_EDGES = ".,;:!?\"'()[]*“”‘’"


class WordClass(StrEnum):
    """What a word does, as far as its form tells."""

    FUNCTION = "function words"
    DESCRIBING = "adjectives and adverbs"
    VERB = "verbs"
    NOUN = "nouns and other words"
    OTHER = "numbers and signs"


def word_class(word: str) -> WordClass:
    """The class of a word, signs around it left out."""
    bare = word.strip().strip(_EDGES).lower()
    if bare in _FUNCTION_WORDS:
        return WordClass.FUNCTION
    if not bare.isalpha():
        return WordClass.OTHER
    if len(bare) > 4 and bare.endswith(_DESCRIBING):
        return WordClass.DESCRIBING
    if len(bare) > 4 and bare.endswith(_ACTING):
        return WordClass.VERB
    return WordClass.NOUN


def by_class(words: Sequence[str]) -> dict[WordClass, list[int]]:
    """Places of the words of each class."""
    places: dict[WordClass, list[int]] = defaultdict(list)
    for place, word in enumerate(words):
        places[word_class(word)].append(place)
    return places


def exchanged(word: str, other: str) -> str:
    """`other` in the place of `word`: with its white space, signs and capital."""
    bare = word.strip().strip(_EDGES)
    new = other.strip().strip(_EDGES)
    return word.replace(bare, new.capitalize() if bare[:1].isupper() else new, 1)


def of_class(kind: WordClass) -> Edit:
    """Words of one class become others of it. `share` is of all words; a class may have fewer."""

    def edit(text: str, share: float, material: Material, generator: np.random.Generator) -> str:
        words = words_of(text)
        places = by_class(words)[kind]
        others = sorted({material.words[place].strip() for place in by_class(material.words)[kind]})
        count = min(round(share * len(words)), len(places))
        for place in generator.choice(places, size=count, replace=False).tolist() if count else []:
            words[place] = exchanged(words[place], others[int(generator.integers(len(others)))])
        return "".join(words)

    return edit


WORDS: dict[str, Edit] = {
    kind.value: of_class(kind)
    for kind in (WordClass.FUNCTION, WordClass.DESCRIBING, WordClass.VERB, WordClass.NOUN)
}
