"""Held-out prose that ships with the model: prompts to continue, human documents for null studies."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from gen_service.demo_model.training import corpus

PROMPT_WORDS = 25
PROMPTS = 3000
PROMPT_BYTES = 400_000
HUMAN_CHARACTERS = 1_500_000
MAX_HUMAN_CHARACTERS = 100_000


def write(folder: Path, prompts: Path, human: Path) -> None:
    """Write both files from the held-out documents of the corpus in `folder`."""
    documents = list(corpus.read(folder / "held_out.jsonl"))
    prompts.write_text("".join(_within(_prompt_lines(documents), PROMPT_BYTES)))
    for document in documents:
        # One book would otherwise make up a third of the file.
        document["text"] = document["text"][:MAX_HUMAN_CHARACTERS]
    longest = sorted(documents, key=lambda document: -len(document["text"]))
    lines = _within((json.dumps(document) + "\n" for document in longest), HUMAN_CHARACTERS)
    human.write_bytes(gzip.compress("".join(lines).encode(), mtime=0))


def _prompt_lines(documents: list[corpus.Document]) -> Iterator[str]:
    """The first words of every paragraph that goes on after them; all first paragraphs come first."""
    queues = [document["text"].split("\n\n") for document in documents]
    count = 0
    for position in range(max(map(len, queues))):
        for paragraphs in queues:
            words = paragraphs[position].split() if position < len(paragraphs) else []
            if len(words) > PROMPT_WORDS and count < PROMPTS:
                count += 1
                yield json.dumps({"prompt": " ".join(words[:PROMPT_WORDS])}) + "\n"


def _within(lines: Iterator[str], limit: int) -> Iterator[str]:
    size = 0
    for line in lines:
        size += len(line)
        if size > limit:
            return
        yield line
