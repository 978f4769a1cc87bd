"""Roughly, the language of an answer: enough to see that it is another one than was asked in."""

import re
from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "zh": "Chinese",
}
WITHOUT_SPACES = frozenset({"zh"})
"""Edits of words mean nothing there."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FUNCTION_WORDS: Mapping[str, frozenset[str]] = {
    "en": _words("the of and to is that it for as with are be by this from or you they have"),
    "de": _words("der die und das ist nicht ein eine zu den mit von im dem auf für sich des es sind"),
    "fr": _words("le la les de des et est un une dans pour que qui du au sur pas par ce il"),
    "es": _words("el la los las de y es un una en que por con para del se su al como más"),
}
_WORD = re.compile(r"[^\W\d_]+")
_HAN = re.compile(r"[\u4e00-\u9fff]")


def language_of(text: str) -> str | None:
    """ISO 639 code of the language with the most function words; Chinese where Han letters are the most.

    None where no language has any, or two have the same number.
    """
    words = _WORD.findall(text.lower())
    letters = sum(map(len, words))
    if letters and len(_HAN.findall(text)) > letters / 2:
        return "zh"
    counts = {code: sum(word in known for word in words) for code, known in _FUNCTION_WORDS.items()}
    best = max(counts, key=lambda code: counts[code])
    alone = sum(count == counts[best] for count in counts.values()) == 1
    return best if alone and counts[best] else None
