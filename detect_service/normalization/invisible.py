"""Characters that show nothing, and white space that looks like other white space."""

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
