"""Numbers of lists as pages draw them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

_ROMAN = (
    *((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc")),
    *((50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")),
)
_MOST_ROMAN, _MOST_LETTERS = 4_000, 26 * 40


def roman(number: int) -> str:
    """Small Roman numerals, where there are any."""
    if not 0 < number < _MOST_ROMAN:
        return str(number)
    written = ""
    for value, letters in _ROMAN:
        times, number = divmod(number, value)
        written += letters * times
    return written


def letters(number: int) -> str:
    """a to z, aa, ab ... as web pages count."""
    if not 0 < number < _MOST_LETTERS:
        return str(number)
    first, last = divmod(number - 1, 26)
    return (letters(first) if first else "") + chr(ord("a") + last)


def doubled_letters(number: int) -> str:
    """a to z, aa, bb ... as word processors count."""
    times, last = divmod(number - 1, 26)
    return chr(ord("a") + last) * (times + 1) if 0 < number < _MOST_LETTERS else str(number)


Format = Callable[[int], str]
WORD_FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "lowerLetter": doubled_letters,
        "upperLetter": lambda number: doubled_letters(number).upper(),
        "lowerRoman": roman,
        "upperRoman": lambda number: roman(number).upper(),
        "decimalZero": lambda number: f"{number:02}",
    }
)
"""By the names that Word gives them; all others are written as plain numbers."""
LETTER_FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "a": letters,
        "A": lambda number: letters(number).upper(),
        "i": roman,
        "I": lambda number: roman(number).upper(),
    }
)
"""By the letter that OpenDocument and HTML name them by; all others are written as plain numbers."""
