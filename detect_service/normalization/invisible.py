"""Characters that show nothing or look like white space, and line breaks that mails put into paragraphs."""

import re
from itertools import groupby, pairwise

import regex  # type: ignore[import-untyped]

Span = tuple[int, int]

# What several scripts and emoji are written with is left alone there: the first alternatives.
_INVISIBLE = regex.compile(
    "\U0001f3f4[\U000e0020-\U000e007e]+\U000e007f"  # flags of England, Scotland, Wales
    "|\\p{Han}[\U000e0100-\U000e01ef]"
    "|\\p{Mongolian}[\u180b-\u180f]"
    "|[\u115f\u1160](?=\\p{Hangul})|(?<=\\p{Hangul})[\u115f\u1160]"
    "|(?P<stray>(?<=[\\x00-\\x7f\\p{Latin}\u0300-\u036f\u2010-\u2027])[\u200c\u200d\ufe00-\ufe0f]+(?!\u20e3)"
    "|[\\x00-\\x08\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f\ufff9-\ufffb]+"
    "|[\\p{Default_Ignorable_Code_Point}--[\u200c\u200d\ufe00-\ufe0f\u3164\uffa0]]+)",
    flags=regex.VERSION1,
)
_ODD_LINE_END = regex.compile("\r(?=\n)|[\r\x0b\x0c\x85\u2028\u2029]")
# Blank letters, too: Hangul fillers, and the empty Braille cell outside of Braille.
_ODD_SPACE = regex.compile(
    "[\\p{Zs}--\\x20]|[\u3164\uffa0]|(?<![\u2801-\u28ff])\u2800(?![\u2801-\u28ff])", flags=regex.VERSION1
)
# Indentation is seen; what stands before the end of a line is not, and hardly a second space in it.
_NEEDLESS_SPACE = regex.compile(r"(?<![ \t])(?:([ \t]++)(?=\n)|(?<=\S)[ \t]([ \t]++))")


def invisible_characters(text: str) -> list[Span]:
    """Spans of characters that show nothing and that no script or emoji needs there."""
    return [match.span() for match in _INVISIBLE.finditer(text) if match["stray"]]


def plain_white_space(text: str) -> str:
    """The text with line feeds and spaces for their look-alikes; a CR before a line feed stays for now."""
    return str(_ODD_SPACE.sub(" ", _ODD_LINE_END.sub(_line_end, text)))


def needless_spaces(text: str) -> list[Span]:
    """Spans of spaces and tabs at the ends of lines, and of all but the first of a run inside a line."""
    return [match.span(1 if match[1] else 2) for match in _NEEDLESS_SPACE.finditer(text)]


def _line_end(match: regex.Match[str]) -> str:
    return "\r" if match.string.startswith("\n", match.end()) and match[0] == "\r" else "\n"


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
