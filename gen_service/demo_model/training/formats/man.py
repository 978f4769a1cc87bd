"""Manual pages in troff."""

import re

_ROFF_ESCAPES = (
    (re.compile(r"\\f(\[[^]]*\]|\(..|.)|\\s[-+]?\d|\\[&/,|^%:cd]"), ""),
    (re.compile(r"\\\(aq|\\\[aq\]|\\'|\\\(cq|\\\(oq"), "'"),
    (re.compile(r"\\\(lq|\\\(rq|\\\(dq|\\\[[lrd]q\]"), '"'),
    (re.compile(r"\\\((em|en|mi)|\\\[(em|en)\]|\\-"), "-"),
    (re.compile(r"\\e|\\\(rs"), r"\\"),
    (re.compile(r"\\[ ~0]"), " "),
    (re.compile(r"\\m\[[^]]*\]|\\\*\(..|\\\*\[[^]]*\]|\\h'[^']*'|\\[(].."), ""),
)
_ROFF_FONTS = frozenset({"B", "I", "R", "BR", "BI", "IB", "IR", "RB", "RI", "SM", "SB"})
_ROFF_LISTING = {".nf": ".fi", ".EX": ".EE", ".TS": ".TE", ".Bd": ".Ed"}


def from_man(text: str) -> list[str]:
    """Paragraphs of a manual page written with the man macros."""
    paragraphs: list[str] = []
    lines: list[str] = []
    listing_end = ""
    tag_follows = False
    for line in text.splitlines():
        macro, _, arguments = line.partition(" ")
        if listing_end:
            listing_end = "" if macro == listing_end else listing_end
        elif line.startswith((r"'\"", r".\"")):
            continue
        elif tag_follows:
            tag_follows = False
        elif not line.startswith((".", "'")):
            lines.append(line)
        elif macro[1:] in _ROFF_FONTS:
            joiner = " " if len(macro) == 2 or macro in {".SM", ".SB"} else ""
            lines.append(joiner.join(re.findall(r'"[^"]*"|\S+', arguments)).replace('"', ""))
        else:
            paragraphs.append(" ".join(lines))
            lines = []
            tag_follows = macro == ".TP"
            listing_end = _ROFF_LISTING.get(macro, "")
    paragraphs.append(" ".join(lines))
    return [_unescape_roff(paragraph) for paragraph in paragraphs]


def _unescape_roff(text: str) -> str:
    for pattern, plain in _ROFF_ESCAPES:
        text = pattern.sub(plain, text)
    return text
