"""Bytes to characters: what a file says of its encoding first, then what its bytes say."""

import codecs
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from charset_normalizer import CharsetMatch, from_bytes

from ttmark.detect_service.features.files.text.extraction import UnreadableFile

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_PROPER_NAMES = {f"cp125{digit}": f"windows-125{digit}" for digit in range(9)}
# What files in the wild have; among more there is always one that fits by accident.
_CANDIDATE_NAMES = (
    "cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 iso8859_2 iso8859_5 iso8859_7 koi8_r mac_roman "
    "gb18030 big5 euc_jp cp932 cp949"
)
_CANDIDATES = _CANDIDATE_NAMES.split()
_SEVERAL_BYTES = frozenset({"gb18030", "big5", "euc_jp", "cp932", "cp949"})
# Where these are written, files without a word on their encoding are in Windows-1252; it differs from its
# neighbours in few letters, so that the bytes alone often fit several.
_WESTERN_LANGUAGES = (
    "Danish Dutch English Finnish French German Indonesian Italian Norwegian Portuguese Spanish Swedish"
)
_WESTERN = frozenset(_WESTERN_LANGUAGES.split())
_SAMPLE = 32_768
# The detector's word on the language of a shorter text is worth little.
_LEAST_TELLING = 200
# In Windows-1252 at the places of Turkish letters; of its own languages only Icelandic has them.
_RATHER_TURKISH = frozenset("ÐÝÞðýþ")
# A handful of different bytes fits any alphabet.
_LEAST_DIFFERENT = 12
# Differences in the detector's measure of disorder that decide nothing.
_CLOSE = 0.02
_MOST_DISORDER = 0.1


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


class Decoded(NamedTuple):
    """Characters, the name of their encoding, and what could not be read, in words."""

    text: str
    encoding: str
    unread: str | None = None


def codec(label: str | None) -> str | None:
    """Python's name of the encoding that a page or mail names; None: none that they can have."""
    try:
        name = codecs.lookup(label).name if label else None
    except (LookupError, ValueError):
        return None
    if name is None:
        return None
    # A declaration that can be read as ASCII is not in UTF-16, whatever it says.
    name = "utf-8" if name.startswith("utf-16") else _READ_AS.get(name, name)
    return name if _CHARACTERS.fullmatch(name) else None


def decode(content: bytes, declared: str | None = None) -> Decoded:
    """The characters of a file and the name of its encoding.

    A byte order mark counts most, then UTF-16 that shows itself, valid UTF-8, what the file declares, and
    what a detector finds in its bytes.

    Args:
        declared: encoding that the file itself names.

    Raises:
        UnreadableFile: the bytes are not what the mark or the declaration says, or no encoding stands out.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return _strictly(content[len(mark) :], encoding)
    if wide := _wide(content):
        return _strictly(content, wide)
    escapes = declared == "iso2022_jp" and b"\x1b" in content  # ASCII to whoever does not know
    if not escapes:
        try:
            return Decoded(content.decode("utf-8"), "utf-8")
        except UnicodeDecodeError:
            pass
        if (mended := _mostly_utf_8(content)) is not None:
            return mended
    if declared is not None and declared != "utf-8":
        return _strictly(content, declared)
    telling = b"".join(line for line in content.splitlines(True) if not line.isascii())
    detected = _narrow(telling[:_SAMPLE])
    if detected is None and declared == "utf-8":
        return _strictly(content, declared)
    if detected is None:
        raise UnreadableFile(
            "The file is not a text in UTF-8, and its bytes do not tell another encoding. Save it as UTF-8.",
            "encoding",
        )
    return _strictly(content, detected)


_FEW = 200
_REPLACEMENT = "\ufffd"


def _strictly(content: bytes, encoding: str) -> Decoded:
    """Characters of an encoding; a byte in 200 that is none of it is told, more are refused."""
    name = _PROPER_NAMES.get(encoding, encoding)
    try:
        return Decoded(content.decode(encoding), name)
    except UnicodeDecodeError:
        text = content.decode(encoding, "replace")
        strange = text.count(_REPLACEMENT)
        if strange * _FEW <= len(text):
            return Decoded(text, name, _told(strange, name))
        raise UnreadableFile(
            f"The file looks like {name} but is not. Save it as UTF-8.", "encoding"
        ) from None


def _mostly_utf_8(content: bytes) -> Decoded | None:
    """UTF-8 with a few bytes that are not, of which the letters beyond ASCII speak."""
    text = content.decode("utf-8", "replace")
    strange = text.count(_REPLACEMENT)
    beyond = sum(map("\x7f".__lt__, text)) - strange
    if strange * _FEW <= len(text) and strange * 4 <= beyond:
        return Decoded(text, "utf-8", _told(strange, "utf-8"))
    return None


def _told(strange: int, name: str) -> str:
    return f"The file looks like {name}, and {strange} of its characters are none of it."


def _wide(content: bytes) -> str | None:
    """UTF-16 without a mark, where most characters are below 256. Such bytes are valid UTF-8 as well."""
    sample = content[:_SAMPLE]
    half = len(sample) / 2
    if sample[1::2].count(0) > 0.5 * half and sample[::2].count(0) == 0:
        return "utf-16-le"
    if sample[::2].count(0) > 0.5 * half and sample[1::2].count(0) == 0:
        return "utf-16-be"
    return None


def is_binary(content: bytes) -> bool:
    """Whether there are zero bytes at the beginning that no encoding of two or four bytes explains."""
    if any(content.startswith(mark) for mark, _ in _MARKS) or _wide(content):
        return False
    return b"\0" in content[:_SAMPLE]


def _narrow(sample: bytes) -> str | None:
    if len(set(sample)) < _LEAST_DIFFERENT:
        return None
    matches = list(from_bytes(sample, cp_isolation=_CANDIDATES, preemptive_behaviour=False))
    if not matches or matches[0].chaos > _MOST_DISORDER or not _is_language(matches[0]):
        return None
    best = matches[0]
    rivals = [match for match in matches if match.chaos <= best.chaos + _CLOSE and _is_language(match)]
    names = {name for match in rivals for name in (match.encoding, *match.could_be_from_charset)}
    if len(rivals) == 1 and best.encoding in _SEVERAL_BYTES:
        return best.encoding
    if len(sample) < _LEAST_TELLING:
        return None
    if "cp1252" in names and best.language in _WESTERN:
        return None if _RATHER_TURKISH.intersection(sample.decode("cp1252")) else "cp1252"
    return best.encoding if len(rivals) == 1 else None


def _is_language(match: CharsetMatch) -> bool:
    return match.coherence > 0 or match.encoding in _SEVERAL_BYTES
