"""Prompt files: JSONL with a field `prompt`."""

from pathlib import Path

import orjson

from shared.tokenization import TextTokenizer


def read_prompts(path: Path, tokenizer: TextTokenizer, count: int, max_tokens: int = 64) -> list[list[int]]:
    """The first `count` prompts as token ids, each its last `max_tokens`; repeated when there are fewer.

    Raises:
        ValueError: the file has no prompt, or a line without the field.
    """
    prompts: list[list[int]] = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            prompts.append(tokenizer.encode(orjson.loads(line)["prompt"])[-max_tokens:])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: not an object with the field `prompt`") from error
        if len(prompts) == count:
            break
    if not prompts:
        raise ValueError(f"{path} holds no prompt")
    return [prompts[index % len(prompts)] for index in range(count)]
