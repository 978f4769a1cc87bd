"""Bodies that take the most to read for their size: what an attacker sends who has a token."""

import base64
import json
from collections.abc import Callable

import numpy as np


def _of(characters: str, size: int, *, seed: int = 1) -> str:
    """Random characters, `size` bytes of them in UTF-8."""
    count = size // min(len(one.encode()) for one in characters)
    points = np.array([ord(one) for one in characters], dtype=np.uint32)
    text = np.random.default_rng(seed).choice(points, count).tobytes().decode("utf-32-le")
    return text.encode()[:size].decode(errors="ignore")


def _range(first: int, last: int) -> str:
    return "".join(map(chr, range(first, last)))


def _marked(size: int) -> str:
    """Letters, each under several marks."""
    marks = _of(_range(0x300, 0x360), size - size // 8)
    return "".join("a" + marks[start : start + 4] for start in range(0, len(marks), 4))


def _one(text: str) -> bytes:
    return json.dumps({"inputs": [{"text": text}]}, ensure_ascii=False).encode()


def _ids(size: int) -> bytes:
    return b'{"inputs": [{"token_ids": [' + b",".join([b"300"] * ((size - 64) // 4)) + b"]}]}"


def _nested(size: int) -> bytes:
    return b'{"inputs": ' + b"[" * (size // 2) + b"]" * (size // 2 - 64) + b"}"


def _tiny(size: int) -> bytes:
    return b'{"inputs": [' + b",".join([b'{"text":"a"}'] * ((size - 64) // 13)) + b"]}"


WORST_BODIES: dict[str, Callable[[int], bytes]] = {
    "white space": lambda size: _one(_of(" \u2003", size - 4096)),
    "spaces": lambda size: _one(" " * (size - 64)),
    "one letter": lambda size: _one("a" * (size - 64)),
    "random letters": lambda size: _one(_of(_range(97, 123), size - 64)),
    "random signs": lambda size: _one(_of(_range(35, 91), size - 64)),
    "words": lambda size: _one(_of(_range(97, 123) + "     ", size - 64)),
    "emoji": lambda size: _one(_of(_range(0x1F300, 0x1F600), size - 64)),
    "combining marks": lambda size: _one(_marked(size // 2)),
    "escapes": lambda size: json.dumps(
        {"inputs": [{"text": _of(_range(0x1F300, 0x1F600), size // 3 - 64)}]}
    ).encode(),
    "Chinese": lambda size: _one(_of(_range(0x4E00, 0x9FA5), size - 64)),
    "base64": lambda size: _one(
        base64.b64encode(np.random.default_rng(1).bytes(size * 3 // 4 - 64)).decode()
    ),
    "token ids": _ids,
    "nested": _nested,
    "tiny documents": _tiny,
}
"""By name: bytes -> a JSON body of at most so many. 8 MiB of them are over a limit of the service."""
