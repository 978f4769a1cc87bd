"""Files that the user brings: prompts, and text by people."""

import gzip
from collections.abc import Iterator
from pathlib import Path

import orjson

from ttmark.shared.tokenization import TextTokenizer

MAX_TOKENS = 64


def read_human_texts(path: Path) -> list[str]:
    """Every document of the file.

    Raises:
        ValueError: the file has no text, or a line without the field.
    """
    texts = list(read_field(path, "text"))
    if not texts:
        raise ValueError(f"{path} holds no text")
    return texts


def read_prompts(path: Path, tokenizer: TextTokenizer, max_tokens: int = MAX_TOKENS) -> list[tuple[int, ...]]:
    """Prompts as token ids, each its last `max_tokens`; empty ones are left out.

    Raises:
        ValueError: the file has no prompt, or a line without the field.
    """
    encoded = [tuple(tokenizer.encode(prompt)[-max_tokens:]) for prompt in read_field(path, "prompt")]
    prompts = [tokens for tokens in encoded if tokens]
    if not prompts:
        raise ValueError(f"{path} holds no prompt")
    return prompts


def read_field(path: Path, field: str) -> Iterator[str]:
    """One field of each line of a JSONL file, plain or .gz."""
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            yield str(orjson.loads(line)[field])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: not an object with the field `{field}`") from error
