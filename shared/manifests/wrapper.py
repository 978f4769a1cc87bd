"""`C2PATextManifestWrapper`: bytes as characters that show nothing (C2PA 2.4, Annex A.8).

A byte order mark, then a variation selector for each byte: 8 bytes of magic, the version, the manifest's
length, the manifest, padding. It stands at the end of the text that it is about.
"""

import re
import struct
from dataclasses import dataclass
from functools import cached_property

import numpy as np

VERSION = 1
MOST_MANIFEST_BYTES = 256 * 1024
_PREFIX = "\ufeff"
_MAGIC = b"C2PATXT\0"
_HEADER = struct.Struct("!8sBI")
_SELECTORS = [chr(0xFE00 + byte) for byte in range(16)] + [chr(0xE0100 + byte) for byte in range(240)]
BEGINNING = "".join(_SELECTORS[byte] for byte in _MAGIC)
# A wrapper that lost its byte order mark, as some editors do to it, is still to be seen and said.
WRAPPER = re.compile(f"{_PREFIX}?{BEGINNING}[\ufe00-\ufe0f\U000e0100-\U000e01ef]*")
_LONGEST_CHARACTER = 4  # bytes of a selector in UTF-8; those of the bytes below 16 have 3


@dataclass(frozen=True)
class Wrapper:
    """A wrapper in a text.

    Attributes:
        start, end: characters of the text that it was found in.
        characters: these.
    """

    start: int
    end: int
    characters: str

    @cached_property
    def utf8_bytes(self) -> int:
        return len(self.characters.encode("utf-8"))

    def manifest(self) -> bytes:
        """The bytes that it carries.

        Raises:
            BrokenWrapper: it is damaged, cut short, or longer than we read.
        """
        if not self.characters.startswith(_PREFIX):
            raise BrokenWrapper("the character before the manifest is missing")
        selectors = self.characters[1 : 1 + _HEADER.size + MOST_MANIFEST_BYTES]
        codes = np.frombuffer(selectors.encode("utf-32-le"), dtype=np.uint32)
        data = np.where(codes < 0xE0100, codes - 0xFE00, codes - 0xE0100 + 16).astype(np.uint8).tobytes()
        if len(data) < _HEADER.size:
            raise BrokenWrapper("the manifest is cut short")
        _, version, length = _HEADER.unpack_from(data)
        if version != VERSION:
            raise BrokenWrapper(f"version {version} of the wrapper is not known")
        if length > MOST_MANIFEST_BYTES:
            raise BrokenWrapper(f"the manifest is larger than {MOST_MANIFEST_BYTES} bytes")
        if len(data) < _HEADER.size + length:
            raise BrokenWrapper("the manifest is cut short")
        return data[_HEADER.size : _HEADER.size + length]


class BrokenWrapper(Exception):
    """What stands where a manifest should be is none; the message says why."""


def wrapper_size(manifest_bytes: int) -> int:
    """Bytes in UTF-8 of the wrapper that `wrapped` makes of so many, whatever they are."""
    # Six more than the most that it takes: any gap from 6 on is a sum of threes and fours.
    return len(_PREFIX.encode()) + _LONGEST_CHARACTER * (_HEADER.size + manifest_bytes) + 6


def wrapped(manifest: bytes) -> str:
    """The wrapper of a manifest, padded to `wrapper_size`: the manifest itself names its size."""
    text = _PREFIX + "".join(
        _SELECTORS[byte] for byte in _HEADER.pack(_MAGIC, VERSION, len(manifest)) + manifest
    )
    gap = wrapper_size(len(manifest)) - len(text.encode("utf-8"))
    threes = -gap % 4
    return text + _SELECTORS[0] * threes + _SELECTORS[255] * ((gap - 3 * threes) // 4)


def may_hold_wrappers(text: str) -> bool:
    """Whether there is one, as fast as texts are searched."""
    return BEGINNING in text


def wrappers(text: str) -> list[Wrapper]:
    """The wrappers of a text in order, in time linear in it; damaged ones too."""
    if not may_hold_wrappers(text):
        return []
    return [Wrapper(*found.span(), found[0]) for found in WRAPPER.finditer(text)]


def without_wrappers(text: str) -> str:
    return WRAPPER.sub("", text) if may_hold_wrappers(text) else text
