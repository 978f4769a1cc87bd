"""Unwatermarked texts as token ids: prose, code, lists, and text that loops."""

import hashlib
import inspect
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import scipy.optimize
import scipy.stats
from numpy.typing import NDArray

VOCABULARY = 50_000
WORD = re.compile(r"\w+|[^\w\s]|\s+")
SHORTEST, LONGEST = 0, 600
FILES = 400


def unwatermarked(count: int, rng: np.random.Generator) -> Iterator[tuple[str, NDArray[np.int64]]]:
    """`count` texts with their kind, drawn from the standard library and from simple patterns."""
    sources = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:FILES]
    code = token_ids("\n".join(path.read_text(encoding="utf-8") for path in sources))
    prose = token_ids("\n".join(_docstrings()))
    for index in range(count):
        length = int(rng.integers(SHORTEST, LONGEST))
        kind = ("prose", "code", "list", "loop", "constant")[index % 5]
        if kind == "prose":
            tokens = _cut(prose, length, rng)
        elif kind == "code":
            tokens = _cut(code, length, rng)
        elif kind == "list":
            tokens = token_ids("\n".join(f"{i}. item {i % 7}" for i in range(length // 6 + 1)))[:length]
        else:
            period = 1 if kind == "constant" else int(rng.integers(1, 51))
            tokens = np.resize(rng.integers(0, VOCABULARY, period), length)
        yield kind, tokens


def token_ids(text: str) -> NDArray[np.int64]:
    """Words, signs and white space as ids: what a tokenizer does, without one."""
    words = WORD.findall(text)
    ids = {word: _identifier(word) for word in set(words)}
    return np.array([ids[word] for word in words], dtype=np.int64)


def _identifier(word: str) -> int:
    return int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little") % VOCABULARY


def _cut(tokens: NDArray[np.int64], length: int, rng: np.random.Generator) -> NDArray[np.int64]:
    start = int(rng.integers(0, tokens.size - length))
    return tokens[start : start + length]


def _docstrings() -> Iterator[str]:
    """Docstrings of numpy and scipy functions: English technical prose."""
    for package in (np, scipy.stats, scipy.optimize):
        for name in sorted(dir(package)):
            text = inspect.getdoc(getattr(package, name))
            if text:
                yield text
