"""Line breaks that a mail program or a printed page put into paragraphs, and the signs of quoted mails."""

import re
from itertools import groupby, pairwise

from ttmark.detect_service.normalization.invisible import Span

_QUOTE = re.compile("^(?:> ?)+", re.MULTILINE)
_ITEM = re.compile(r"[-*+•>#|\s]|[0-9]+[.)]")
_FEWEST = 3
# No text for people has shorter lines on average, and the time that lines take is bounded.
_NARROWEST = 20


def quote_signs(text: str) -> list[Span]:
    """Spans of `>` at the beginnings of lines, where half of the lines that are not blank have them."""
    spans = [match.span() for match in _QUOTE.finditer(text)] if ">" in text else []
    written = sum(line.strip() != "" for line in text.split("\n")) if spans else 0
    return spans if 2 * len(spans) >= written else []


def broken_lines(text: str) -> list[int]:
    """Places of line breaks that only the width of a page made, if most of the breaks in paragraphs are such.

    A break is one if the next word would have made its line the longest of the paragraph, and no item of a
    list, heading or indented line follows.
    """
    breaks = text.count("\n")
    if breaks < _FEWEST or len(text) < _NARROWEST * breaks:
        return []
    places: list[int] = []
    kept = at = 0
    for blank, lines in groupby(text.split("\n"), lambda line: not line.strip()):
        paragraph = list(lines)
        longest = max(map(len, paragraph))
        for line, following in pairwise(paragraph):
            at += len(line) + 1
            if blank or _ITEM.match(following):
                continue
            if len(line) + 1 + len(following.split(None, 1)[0]) > longest:
                places.append(at - 1)
            else:
                kept += 1
        at += len(paragraph[-1]) + 1
    return places if len(places) >= max(_FEWEST, kept) else []
