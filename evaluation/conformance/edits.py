"""What happens to answers between the service and a detector: edits by name."""

from collections.abc import Callable, Mapping

import numpy as np

from ttmark.evaluation.edits import EDITS, Material, sentences_of, words_of

Edited = Callable[[str, Material, np.random.Generator], str]

_QUOTES = str.maketrans({"'": "’", '"': "”", "-": "–"})
_ASCII = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})
_LOOK_ALIKES = str.maketrans({"a": "а", "e": "е", "o": "о", "c": "с", "p": "р"})


def _by_name(name: str, share: float) -> Edited:
    return lambda text, material, generator: EDITS[name](text, share, material, generator)


def retyped(text: str, _: Material, __: np.random.Generator) -> str:
    """As mail programs leave it: other quotes and dashes, two spaces after a sentence."""
    other = text.translate(_ASCII)
    other = text.translate(_QUOTES) if other == text else other
    return other.replace(". ", ".  ")


def without_markup(text: str, _: Material, __: np.random.Generator) -> str:
    """Markdown's signs and line breaks are gone, as after a copy through a plain field."""
    return " ".join(text.translate(str.maketrans("", "", "*#`_|")).split())


def first_half(text: str, _: Material, __: np.random.Generator) -> str:
    words = words_of(text)
    return "".join(words[: len(words) // 2])


def sentences_deleted(text: str, _: Material, generator: np.random.Generator) -> str:
    """Every third sentence on average is gone."""
    return "".join(one for one in sentences_of(text) if generator.random() >= 1 / 3)


def invisible(text: str, _: Material, __: np.random.Generator) -> str:
    """A zero-width space after every word."""
    return "\u200b".join(words_of(text))


def look_alikes(text: str, _: Material, __: np.random.Generator) -> str:
    """Five Latin letters are Cyrillic ones that look alike, throughout."""
    return text.translate(_LOOK_ALIKES)


CONFORMANCE_EDITS: Mapping[str, Edited] = {
    "none": lambda text, _, __: text,
    "10 % of the words edited": _by_name("mix", 0.10),
    "20 % of the words edited": _by_name("mix", 0.20),
    "10 % of the words deleted": _by_name("delete", 0.10),
    "a third of the sentences deleted": sentences_deleted,
    "first half alone": first_half,
    "half of the text by people, around it": _by_name("dilute", 0.5),
    "four fifths by people, around it": _by_name("dilute", 0.8),
    "30 % rewritten in runs": _by_name("rewrite", 0.3),
    "quotes, dashes and spaces retyped": retyped,
    "markup and line breaks removed": without_markup,
    "zero-width spaces between words": invisible,
    "look-alike letters": look_alikes,
}
"""Of words: one third each replaced, deleted, followed by a new one. None rephrases or translates."""
