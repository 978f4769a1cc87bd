"""Letters that look like ASCII letters, by Unicode's compatibility forms and its table of confusables."""

import unicodedata
from collections.abc import Iterator
from functools import cache

from confusable_homoglyphs import categories, confusables  # type: ignore[import-untyped]

# Kinds of compatibility forms that are drawn like the plain letter; a superscript or a circled letter is not.
_STYLES = ("<font>", "<wide>", "<narrow>", "<compat>")
_DOTLESS = {"ı": "i", "ȷ": "j"}
# A text that holds one of these for each two dotless i is in Turkish or a relative of it.
_TURKISH = frozenset("çğöüşəÇĞÖÜŞƏİ")


@cache
def look_alike_letters() -> dict[str, str]:
    """Letters of any script that are drawn like an ASCII letter, each with that letter."""
    table: dict[str, str] = {}
    for character, looks_like in confusables.confusables_data.items():
        if len(character) != 1 or character.isascii() or not unicodedata.category(character).startswith("L"):
            continue
        drawn_like = [entry["c"] for entry in looks_like]
        ascii_letters = [c for c in drawn_like if len(c) == 1 and c.isascii() and c.isalpha()]
        if ascii_letters and categories.alias(character) != "COMMON":
            table[character] = _in_case_of(character, ascii_letters[0])
    return {letter: plain for letter, plain in table.items() if letter not in _DOTLESS}


@cache
def styled_letters() -> dict[str, str]:
    """Mathematical and full-width letters and digits, Roman numerals, ligatures: each with its plain form."""
    return dict(_styled())


def _styled() -> Iterator[tuple[str, str]]:
    for code in range(0x80, 0x20000):
        character = chr(code)
        decomposition = unicodedata.decomposition(character)
        if not decomposition or unicodedata.category(character)[0] not in "LN":
            continue
        plain = unicodedata.normalize("NFKC", character)
        plain = _DOTLESS.get(plain, plain)
        styled = not decomposition.startswith("<") or decomposition.startswith(_STYLES)
        if styled and plain.isascii() and plain.isalnum():
            yield character, plain


def dotless_letters(text: str) -> dict[str, str]:
    """The dotless letters of `text` with their dotted forms; none where its language writes them.

    Turkish and its relatives have dotless i beside other letters of their own, which are more frequent.
    """
    dotless = text.count("ı")
    if dotless and sum(map(text.count, _TURKISH)) * 2 >= dotless:
        return {"ȷ": "j"}
    return _DOTLESS


def _in_case_of(character: str, letter: str) -> str:
    # The data maps the capital iotas of all scripts to a small l, which they resemble as well.
    return "I" if letter == "l" and character.isupper() else letter
