"""The encoding that a web page says it has (WHATWG HTML, "prescan a byte stream")."""

import codecs
import re
from collections.abc import Mapping
from types import MappingProxyType

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
