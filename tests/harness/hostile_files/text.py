"""Texts whose encoding is hard to tell."""

import random


def _random(size: int) -> bytes:
    return random.Random(1).randbytes(size).replace(b"\0", b"\1")


def _one_line(size: int) -> bytes:
    return b"a" * (size - 1) + b"\xe9"


FILES = {
    "random.txt": _random,
    "one-line.txt": _one_line,
    "high-bytes.txt": lambda size: bytes(range(128, 256)) * (size // 128),
    "lines.txt": lambda size: b"\xe9\n" * (size // 2),
}
