"""Plain text, light markup and the docstrings that are written in it."""

import ast
import inspect
import re
from collections.abc import Iterator

_RST_ROLE = re.compile(r":[a-z:]+:`~?([^`<]*?)(?: ?<[^`]*>)?`|``([^`]*)``|`([^`<]*?)(?: ?<[^`]*>)?`_{0,2}")
_EMPHASIS = re.compile(r"(?<!\w)\*{1,2}(\S[^*]*)\*{1,2}(?!\w)|\[([^]]+)\]\([^)]*\)")


def from_text(text: str) -> list[str]:
    """Paragraphs of plain text, reStructuredText, Markdown or Info: blocks of lines of equal indentation."""
    paragraphs = []
    for block in re.split(r"\n[ \t]*\n", text):
        lines = block.splitlines()
        if len({len(line) - len(line.lstrip()) for line in lines if line.strip()}) == 1:
            joined = " ".join(lines)
            joined = _RST_ROLE.sub(lambda match: next(filter(None, match.groups()), ""), joined)
            paragraphs.append(_EMPHASIS.sub(lambda match: match[1] or match[2], joined))
    return paragraphs


def from_python(text: str) -> list[str]:
    """Paragraphs of the docstrings of a module, in order; none when it does not parse."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return []
    return [paragraph for docstring in _docstrings(module) for paragraph in from_text(docstring)]


def _docstrings(module: ast.Module) -> Iterator[str]:
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node, clean=False)
            if docstring:
                yield inspect.cleandoc(docstring)
