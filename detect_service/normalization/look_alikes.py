"""Letters that look like ASCII letters, by Unicode's table of confusables."""

import unicodedata

from confusable_homoglyphs import categories, confusables  # type: ignore[import-untyped]

_STYLES = ("MATHEMATICAL ", "FULLWIDTH ")


def foreign_look_alikes() -> dict[str, str]:
    """Letters of another script than Latin, each with the ASCII letter that it is drawn like."""
    table: dict[str, str] = {}
    for character, looks_like in confusables.confusables_data.items():
        if len(character) != 1 or character.isascii() or not unicodedata.category(character).startswith("L"):
            continue
        drawn_like = [entry["c"] for entry in looks_like]
        ascii_letters = [c for c in drawn_like if len(c) == 1 and c.isascii() and c.isalpha()]
        if ascii_letters and categories.alias(character) not in ("LATIN", "COMMON"):
            table[character] = _in_case_of(character, ascii_letters[0])
    return table


def styled_letters() -> dict[str, str]:
    """Mathematical and full-width letters and digits, each with its plain form."""
    ranges = (range(0x1D400, 0x1D800), range(0xFF01, 0xFF5F))
    table: dict[str, str] = {}
    for character in (chr(code) for codes in ranges for code in codes):
        plain = unicodedata.normalize("NFKC", character)
        if unicodedata.name(character, "").startswith(_STYLES) and len(plain) == 1 and plain.isascii():
            table[character] = plain
    return table


def _in_case_of(character: str, letter: str) -> str:
    # The data maps the capital iotas of all scripts to a small l, which they resemble as well.
    return "I" if letter == "l" and character.isupper() else letter
