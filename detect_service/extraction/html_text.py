"""The text of a web page: what a browser shows of it."""

import codecs
import re
from collections.abc import Mapping
from types import MappingProxyType

from lxml import etree, html

from ttmark.detect_service.extraction.encodings import decode
from ttmark.detect_service.extraction.extraction import Extraction, LimitExceeded, UnreadableFile
from ttmark.detect_service.extraction.html_page import Page
from ttmark.detect_service.extraction.layout import markdown

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


# What stands behind them the parser would leave out, which no browser does.
_LAST_TAGS = re.compile(r"</(?:html|body)\s{0,9}>", re.I)


def html_text(content: bytes) -> Extraction:
    """Visible text, lists with their numbers and emphasis as models write it.

    Raises:
        UnreadableFile: nothing in it can be read, or the encoding cannot be told.
        LimitExceeded: nested deeper than 256 levels, or a single text or attribute of more than 10 MB.
    """
    page, encoding = decode(content, declared_encoding(content))
    parser = html.HTMLParser(encoding="utf-8", huge_tree=False)
    try:
        root = html.document_fromstring(_LAST_TAGS.sub("", page).encode("utf-8"), parser=parser)
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        _refuse_limits(parser)
        raise UnreadableFile("The file is not a web page that can be read.", "damaged") from None
    # The library stops at its limits and gives what it has: half a page is no answer.
    _refuse_limits(parser)
    return Extraction(markdown(Page().read(root)), encoding)


def _refuse_limits(parser: html.HTMLParser) -> None:
    for entry in parser.error_log:
        if entry.type == etree.ErrorTypes.ERR_NO_MEMORY:
            raise MemoryError
        if entry.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            if "depth" in entry.message:
                raise LimitExceeded("The web page is nested deeper than the limit of 256 levels.", "nesting")
            raise LimitExceeded("A text or attribute of the web page exceeds the limit of 10 MB.", "text")
