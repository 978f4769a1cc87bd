"""The text of a web page: what its body shows, with a line end where a block ends."""

import codecs
import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from lxml import etree, html

from ttmark.detect_service.extraction.encodings import decode
from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile

_LOOKED_AT = 1024
_CHARSET = re.compile(
    rb"<(?:meta|\?xml)\b[^>]{0,500}?\b(?:charset|encoding)\s?=\s?[\"']?([\w.:-]{1,40})", re.I
)
# Browsers read these labels as supersets of what they name.
_READ_AS: Mapping[str, str] = MappingProxyType(
    {
        "ascii": "cp1252",
        "iso8859-1": "cp1252",
        "iso8859-9": "cp1254",
        "iso8859-11": "cp874",
        "gb2312": "gb18030",
        "gbk": "gb18030",
        "shift_jis": "cp932",
        "euc_kr": "cp949",
        "big5": "big5hkscs",
    }
)
_CHARACTERS = re.compile(
    r"utf-8|cp125\d|cp874|cp932|cp949|cp866|iso8859-\d+|iso2022_jp|koi8-[ru]|gb18030|big5hkscs|euc_jp|mac-(roman|cyrillic)"
)


def declared_encoding(content: bytes) -> str | None:
    """Python's name of the encoding in the page's first 1,024 bytes; None: none that pages can have."""
    match = _CHARSET.search(content[:_LOOKED_AT])
    if match is None:
        return None
    try:
        name = codecs.lookup(match[1].decode("ascii", "replace")).name
    except LookupError:
        return None
    # A declaration that can be read as ASCII is not in UTF-16, whatever it says.
    name = "utf-8" if name.startswith("utf-16") else _READ_AS.get(name, name)
    return name if _CHARACTERS.fullmatch(name) else None


_HIDDEN = frozenset({"script", "style", "template", "noscript", "head", "svg", "iframe", "object"})
_INLINE_TAGS = (
    "a abbr b bdi bdo big cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp small "
    "span strike strong sub sup time tt u var wbr"
)
_INLINE = frozenset(_INLINE_TAGS.split())
_PARAGRAPH = "\n\n"


def html_text(content: bytes) -> Extraction:
    """Visible text; runs of white space count as one space, as in a browser.

    Raises:
        UnreadableFile: nothing in it can be read, or the encoding cannot be told.
        LimitExceeded: nested deeper than 256 levels, or a single text or attribute of more than 10 MB.
    """
    page, encoding = decode(content, declared_encoding(content))
    parser = html.HTMLParser(encoding="utf-8", huge_tree=False)
    try:
        root = html.document_fromstring(page.encode("utf-8"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        _refuse_limits(parser)
        raise UnreadableFile("The file is not a web page that can be read.", "damaged") from None
    # The library stops at its limits and gives what it has: half a page is no answer.
    _refuse_limits(parser)
    return Extraction(tidy("".join(_pieces(root))), encoding)


def tidy(text: str) -> str:
    """No blanks beside line ends and no more than one empty line, in time linear in the text."""
    # A regular expression for "blanks, line end, blanks" is quadratic in runs of blanks without a line end.
    lines = "\n".join(line.strip(" \t") for line in text.split("\n"))
    return re.sub(r"\n{3,}", _PARAGRAPH, lines).strip()


def _refuse_limits(parser: html.HTMLParser) -> None:
    for entry in parser.error_log:
        if entry.type == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError
        if entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            if "depth" in entry.message:
                raise LimitExceeded("The web page is nested deeper than the limit of 256 levels.", "nesting")
            raise LimitExceeded("A text or attribute of the web page exceeds the limit of 10 MB.", "text")


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
