"""Files that the user brings: prompts, and text by people."""

import gzip
from collections.abc import Collection, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import orjson

from ttmark.gen_service.api.plan.prompts import text_ids
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
    """Prompts as token ids, as a request's are made; empty ones are left out.

    Of a long one the last tokens are kept, with what the tokenizer puts before every text: `max_tokens`.

    Raises:
        ValueError: the file has no prompt, or a line without the field.
    """
    encoded = (text_ids(prompt, tokenizer) for prompt in read_field(path, "prompt") if prompt)
    prompts = [_last(ids, tokenizer.special_ids, max_tokens) for ids in encoded if ids]
    if not prompts:
        raise ValueError(f"{path} holds no prompt")
    return prompts


def read_field(path: Path, field: str, missing: str | None = None) -> Iterator[str]:
    """One field of each line of a JSONL file, plain or .gz.

    Args:
        missing: stands where a line has no such field; None: that is an error.
    """
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            found = orjson.loads(line)
            yield str(found[field] if missing is None else found.get(field, missing))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: not an object with the field `{field}`") from error


def _last(ids: Sequence[int], special: Collection[int], most: int) -> tuple[int, ...]:
    """The special tokens that ids begin with, and the last of the others."""
    front = list(takewhile(special.__contains__, ids))[:most]
    rest = ids[len(front) :]
    return (*front, *rest[max(0, len(rest) + len(front) - most) :])
