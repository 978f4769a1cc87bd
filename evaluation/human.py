"""Text by people: JSONL, plain or gzip, with a field `text`."""

import gzip
from pathlib import Path

import orjson


def read_human_texts(path: Path) -> list[str]:
    """Every document of the file.

    Raises:
        ValueError: the file has no text, or a line without the field.
    """
    content = path.read_bytes()
    lines = (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()
    texts = []
    for number, line in enumerate(lines, start=1):
        try:
            texts.append(str(orjson.loads(line)["text"]))
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: not an object with the field `text`") from error
    if not texts:
        raise ValueError(f"{path} holds no text")
    return texts
