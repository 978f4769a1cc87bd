"""The text of a web page: what its body shows, with a line end where a block ends."""

import re
from collections.abc import Iterator

from lxml import etree, html

from detect_service.extraction.errors import UnreadableFile

_HIDDEN = frozenset({"script", "style", "template", "noscript", "head", "svg", "iframe", "object"})
_INLINE_TAGS = (
    "a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp small "
    "span strike strong sub sup time tt u var wbr"
)
_INLINE = frozenset(_INLINE_TAGS.split())
_PARAGRAPH = "\n\n"


def html_text(content: bytes) -> str:
    """Visible text; runs of white space count as one space, as in a browser.

    Raises:
        UnreadableFile: nothing in it can be read.
    """
    encoding = "utf-8" if _is_utf8(content) else None
    try:
        root = html.document_fromstring(content, parser=html.HTMLParser(encoding=encoding, huge_tree=False))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        raise UnreadableFile("The file is not a web page that can be read.") from None
    text = "".join(_pieces(root))
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", text)
    return re.sub(r"\n{3,}", _PARAGRAPH, text).strip()


def _pieces(root: html.HtmlElement) -> Iterator[str]:
    hidden: html.HtmlElement | None = None
    for event, element in etree.iterwalk(root, events=("start", "end", "comment", "pi")):
        if event in ("comment", "pi"):
            yield from _spoken(element.tail, hidden)
            continue
        tag = element.tag
        if event == "start":
            if hidden is None and tag in _HIDDEN:
                hidden = element
            if hidden is None and tag not in _INLINE:
                yield "\n" if tag in ("br", "tr", "li") else "" if tag in ("td", "th") else _PARAGRAPH
            yield from _spoken(element.text, hidden)
            continue
        if hidden is element:
            hidden = None
        elif hidden is None and tag not in _INLINE and tag not in ("br", "tr", "li"):
            yield "\t" if tag in ("td", "th") else _PARAGRAPH
        yield from _spoken(element.tail, hidden)


def _spoken(text: str | None, hidden: html.HtmlElement | None) -> Iterator[str]:
    if text and hidden is None:
        yield re.sub(r"[ \t\r\n\f]+", " ", text)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
