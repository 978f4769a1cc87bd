"""Gathers the corpus: documents of unique English paragraphs, shuffled, one in fifty held out."""

import hashlib
import json
import multiprocessing
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypedDict

from gen_service.demo_model.training.prose import prose
from gen_service.demo_model.training.sources import download, local_files, local_roots, package_files

HELD_OUT_SHARE = 0.02
MIN_DOCUMENT_CHARACTERS = 200
MAX_SOURCE_CHARACTERS = 5_000_000
SEED = 2026


class Document(TypedDict):
    """One file's prose: `text` is its paragraphs, an empty line between them."""

    source: str
    text: str


def build(folder: Path, workers: int) -> None:
    """Write `train.jsonl`, `held_out.jsonl` and `sources.json` (characters per source) into `folder`."""
    sources: list[str | Path] = [*local_roots(), *download(folder / "packages")]
    with multiprocessing.Pool(workers) as pool:
        batches = pool.imap(_convert, sources, chunksize=1)
        documents = list(deduplicate(file for batch in batches for file in batch))
    documents.sort(key=lambda document: hashlib.sha256(document["text"].encode()).digest())
    random.Random(SEED).shuffle(documents)  # noqa: S311
    held_out = int(HELD_OUT_SHARE * len(documents))
    _write(folder / "held_out.jsonl", documents[:held_out])
    _write(folder / "train.jsonl", documents[held_out:])
    sizes: Counter[str] = Counter()
    for document in documents:
        sizes[document["source"].partition(":")[0]] += len(document["text"])
    (folder / "sources.json").write_text(json.dumps(dict(sizes.most_common()), indent=1) + "\n")
    print(f"{len(documents)} documents, {sum(sizes.values()) / 1e6:.1f} million characters")


def _convert(source: str | Path) -> list[tuple[str, list[str]]]:
    """(name, paragraphs) of a source's files, up to a size at which no single manual sets the tone."""
    converted = []
    characters = 0
    for name, text in local_files(source) if isinstance(source, str) else package_files(source):
        paragraphs = prose(name, text)
        converted.append((name, paragraphs))
        characters += sum(map(len, paragraphs))
        if characters > MAX_SOURCE_CHARACTERS:
            break
    return converted


def deduplicate(files: Iterable[tuple[str, list[str]]]) -> Iterator[Document]:
    """Documents of the paragraphs not seen before, whatever their case; short documents are left out."""
    seen: set[bytes] = set()
    for name, paragraphs in files:
        fresh = []
        for paragraph in paragraphs:
            digest = hashlib.sha256(paragraph.lower().encode()).digest()[:12]
            if digest not in seen:
                seen.add(digest)
                fresh.append(paragraph)
        text = "\n\n".join(fresh)
        if len(text) >= MIN_DOCUMENT_CHARACTERS:
            yield {"source": name, "text": text}


def read(path: Path) -> Iterator[Document]:
    """The documents of a `.jsonl` file."""
    with path.open() as lines:
        for line in lines:
            yield json.loads(line)


def _write(path: Path, documents: list[Document]) -> None:
    with path.open("w") as file:
        file.writelines(json.dumps(document) + "\n" for document in documents)
