"""A text as the throttle compares it: letters and digits alone, without what a reader would not notice.

Coarser than the normalisation that a detector reads with, and never shown. Two texts that fold alike may have
different answers; they count as variants of each other.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache

from confusable_homoglyphs import confusables  # type: ignore[import-untyped]

_NO_LETTER = re.compile(r"[\W_\u115f\u1160]+")
_FEW_LETTERS = 4  # less than one character in so many is a letter
_ASCII_ALIKE = str.maketrans({"i": "l", "1": "l", "|": "l", "0": "o"})


def letters_of(text: str, normalize: Callable[[str], str]) -> str:
    """The letters and digits of `text`: no case, accents, look-alikes, spaces or punctuation.

    Args:
        normalize: undoes tricks with characters first.
    """
    if text.isascii():
        plain = text.lower()
    else:
        plain = unicodedata.normalize("NFKD", normalize(text)).translate(_look_alikes()).casefold()
    letters = _NO_LETTER.sub("", plain.translate(_ASCII_ALIKE))
    if len(letters) * _FEW_LETTERS < len(text):
        return "".join(plain.split())  # a text of signs has passages too
    return letters


@cache
def _look_alikes() -> dict[int, str]:
    """Every letter that Unicode lists as confusable with an ASCII letter, of whatever script."""
    table = {ord("ı"): "i"}
    for character, looks_like in confusables.confusables_data.items():
        if len(character) == 1 and not character.isascii() and character.isalpha():
            ascii_letters = [one["c"] for one in looks_like if len(one["c"]) == 1 and one["c"].isascii()]
            if ascii_letters and ascii_letters[0].isalnum():
                table[ord(character)] = ascii_letters[0]
    return table
