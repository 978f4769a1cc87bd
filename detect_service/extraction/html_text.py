"""The text of a web page: what a browser shows of it."""

import re

from lxml import etree, html

from ttmark.detect_service.extraction.encodings import codec, decode
from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile
from ttmark.detect_service.extraction.html_page import Page
from ttmark.detect_service.extraction.layout import markdown

_LOOKED_AT = 1024
_CHARSET = re.compile(
    rb"<(?:meta|\?xml)\b[^>]{0,500}?\b(?:charset|encoding)\s?=\s?[\"']?([\w.:-]{1,40})", re.I
)


def declared_encoding(content: bytes) -> str | None:
    """Python's name of the encoding in the page's first 1,024 bytes; None: none that pages can have."""
    match = _CHARSET.search(content[:_LOOKED_AT])
    return codec(match[1].decode("ascii", "replace")) if match else None


# What stands behind them the parser would leave out, which no browser does.
_LAST_TAGS = re.compile(r"</(?:html|body)\s{0,9}>", re.I)


def html_text(content: bytes) -> Extraction:
    """Visible text, lists with their numbers and emphasis as models write it.

    Raises:
        UnreadableFile: nothing in it can be read, or the encoding cannot be told.
        LimitExceeded: nested deeper than 256 levels, or a single text or attribute of more than 10 MB.
    """
    decoded = decode(content, declared_encoding(content))
    parser = html.HTMLParser(encoding="utf-8", huge_tree=False)
    try:
        root = html.document_fromstring(_LAST_TAGS.sub("", decoded.text).encode("utf-8"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        _refuse_limits(parser)
        raise UnreadableFile("The file is not a web page that can be read.", "damaged") from None
    # The library stops at its limits and gives what it has: half a page is no answer.
    _refuse_limits(parser)
    return Extraction(markdown(Page().read(root)), decoded.encoding, unread=decoded.unread)


def _refuse_limits(parser: html.HTMLParser) -> None:
    for entry in parser.error_log:
        if entry.type == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError
        if entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            if "depth" in entry.message:
                raise LimitExceeded("The web page is nested deeper than the limit of 256 levels.", "nesting")
            raise LimitExceeded("A text or attribute of the web page exceeds the limit of 10 MB.", "text")
