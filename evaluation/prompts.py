"""Prompt files: JSONL with a field `prompt`."""

from pathlib import Path

import orjson

from shared.tokenization import TextTokenizer

MAX_TOKENS = 64


def read_prompts(path: Path, tokenizer: TextTokenizer, max_tokens: int = MAX_TOKENS) -> list[tuple[int, ...]]:
    """Prompts as token ids, each its last `max_tokens`; empty ones are left out.

    Raises:
        ValueError: the file has no prompt, or a line without the field.
    """
    prompts = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            tokens = tokenizer.encode(orjson.loads(line)["prompt"])[-max_tokens:]
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: not an object with the field `prompt`") from error
        if tokens:
            prompts.append(tuple(tokens))
    if not prompts:
        raise ValueError(f"{path} holds no prompt")
    return prompts
