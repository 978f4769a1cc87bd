"""What becomes of a text that is copied from one program into another, as what is shown of it."""

import re
import textwrap

import numpy as np

from ttmark.evaluation.text_edits import Material

_QUOTES = str.maketrans({"'": "’", '"': "”", "-": "–"})
_ASCII = str.maketrans({"‘": "'", "’": "'", "“": '"', "”": '"', "–": "-", "—": "-", "…": "..."})
_MARKUP = str.maketrans("", "", "*#`_|")
_MAIL_LINE = 72


def retyped(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    """As mail programs leave it: other quotes and dashes, two spaces after a sentence."""
    other = text.translate(_ASCII)
    other = text.translate(_QUOTES) if other == text else other
    return other.replace(". ", ".  ")


def without_markup(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    """Markdown's signs and line breaks are gone, as after a copy through a plain field."""
    return " ".join(text.translate(_MARKUP).split())


def shown(text: str, _: float, __: Material, ___: np.random.Generator) -> str:
    """As a web page shows it: headings, emphasis, code and items of lists without Markdown's signs."""
    return "\n\n".join(filter(None, map(_block, re.split(r"\n\s*\n", text))))


def mailed(text: str, times: float, _: Material, __: np.random.Generator) -> str:
    """Sent as a mail whose lines are broken, and answered so many times, each with `> ` before the lines."""
    return textwrap.indent("\n".join(_lines(text, _MAIL_LINE)), "> " * round(times), lambda _: True)


def printed(text: str, width: float, _: Material, __: np.random.Generator) -> str:
    """Printed with lines of so many characters in a font of Western Europe, and copied line by line."""
    lines = "\n".join(_lines(text, round(width)))
    signs = "".join(sign for sign in lines if sign.isprintable() or sign == "\n")
    return signs.encode("cp1252", "replace").decode("cp1252")


def _block(text: str) -> str:
    plain = re.sub(r"\*\*(.+?)\*\*|\*(\S.*?)\*|`(.+?)`", lambda found: found[found.lastindex or 0], text)
    lines = re.split(r"(?m)^\s*(?:[-*]|#+) +(.*)$", plain)  # these have lines of their own
    return "\n".join(" ".join(line.split()) for line in lines if line.strip())


def _lines(text: str, width: int) -> list[str]:
    return [line for part in text.split("\n") for line in textwrap.wrap(part, width) or [""]]
