"""Roughly, the language of an answer: enough to see that it is another one than was asked in."""

import re
from collections.abc import Mapping

NAMES: Mapping[str, str] = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "zh": "Chinese",
    "ja": "Japanese",
}
WITHOUT_SPACES = frozenset({"zh", "ja"})
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
_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
_LEAST_KANA = 0.1
"""Of the Han letters and kana of a Japanese text; Chinese has none, but for a name."""


def language_of(text: str) -> str | None:
    """ISO 639 code of the language with the most function words.

    Where most letters are Han letters or kana, it is Japanese with kana among them and Chinese without.

    None where no language has any, or two have the same number.
    """
    words = _WORD.findall(text.lower())
    letters = sum(map(len, words))
    kana = len(_KANA.findall(text))
    east_asian = kana + len(_HAN.findall(text))
    if east_asian > letters / 2:
        return "ja" if kana >= _LEAST_KANA * east_asian else "zh"
    counts = {code: sum(word in known for word in words) for code, known in _FUNCTION_WORDS.items()}
    best = max(counts, key=lambda code: counts[code])
    alone = sum(count == counts[best] for count in counts.values()) == 1
    return best if alone and counts[best] else None
