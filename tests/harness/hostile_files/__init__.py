"""Files made to cost whoever reads them as much as possible."""

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.harness.hostile_files import documents, docx, html, pdf


def _random(size: int) -> bytes:
    return random.Random(1).randbytes(size).replace(b"\0", b"\1")


# Whose encoding is hard to tell.
TEXTS = {
    "random.txt": _random,
    "one-line.txt": lambda size: b"a" * (size - 1) + b"\xe9",
    "high-bytes.txt": lambda size: bytes(range(128, 256)) * (size // 128),
    "lines.txt": lambda size: b"\xe9\n" * (size // 2),
}
SIZE = 8 * 2**20
"""Bytes that each may have."""

HOSTILE_FILES: Mapping[str, Callable[[int], bytes]] = MappingProxyType(
    {**TEXTS, **html.FILES, **docx.FILES, **documents.FILES, **pdf.FILES}
)
"""By file name: makes one of about so many bytes; what is packed is smaller where that is worse."""
