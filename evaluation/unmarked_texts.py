"""Sets of texts that carry no mark: people's, programs', the operator's."""

import hashlib
import inspect
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ttmark.evaluation.experiment_cells import sampling_seed
from ttmark.evaluation.text_edits import words_of
from ttmark.evaluation.text_files import read_human_texts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH

PASSAGE_WORDS = 150
OWN_WORDS = 1_000
FILES = 400
_THINGS = ("bolts", "paper", "lamps", "cables", "chairs", "paint")
_NAMES = ("Ada", "Boris", "Chandra", "Dilek", "Emeka", "Fumiko")


@dataclass(frozen=True, slots=True)
class TextSet:
    """Texts of one origin."""

    name: str
    origin: str
    texts: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Of the hashes of the texts, in order: anybody who has the texts can compute it."""
        digest = hashlib.sha256()
        for text in self.texts:
            digest.update(hashlib.sha256(text.encode()).digest())
        return digest.hexdigest()


def human_documents() -> list[str]:
    return read_human_texts(HUMAN_TEXTS_PATH)


def standard_library() -> list[str]:
    """The source files of Python's standard library, in order."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:FILES]
    return [file.read_text(encoding="utf-8") for file in files]


def docstrings() -> Iterator[str]:
    """Docstrings of numpy and scipy functions: English technical prose."""
    import scipy.optimize  # optional: `--help` works without it
    import scipy.stats

    for package in (np, scipy.stats, scipy.optimize):
        for name in sorted(dir(package)):
            if text := inspect.getdoc(getattr(package, name)):
                yield text


_SOURCES: Mapping[str, tuple[str, Callable[[], Sequence[str]]]] = {
    "people, prose": ("English articles by people (the Jargon File)", human_documents),
    "people, documentation": (
        "documentation by people, of numpy and scipy",
        # scipy draws the numbers of some examples at each import.
        lambda: ["\n".join(one for one in docstrings() if "may vary" not in one)],
    ),
    "people, code": ("Python by people, of its standard library", standard_library),
}


def shipped_sets(passages: int, seed: int) -> list[TextSet]:
    """Of each source so many passages, drawn by the seed, and as many documents that a template made."""
    sets = []
    for name, (origin, documents) in _SOURCES.items():
        generator = np.random.default_rng(sampling_seed(seed, "unmarked", name))
        texts = passages_of(documents(), passages, generator)
        sets.append(TextSet(name, f"{origin}; passages of {PASSAGE_WORDS} words", texts))
    generator = np.random.default_rng(sampling_seed(seed, "unmarked", "templates"))
    notes = tuple("".join(words_of(text)[:PASSAGE_WORDS]) for text in templated_texts(passages, generator))
    origin = "delivery notes that a program made: their lines repeat within a text and between texts"
    return [*sets, TextSet("templates", origin, notes)]


def templated_texts(count: int, rng: np.random.Generator) -> Iterator[str]:
    """Delivery notes that differ in names, numbers and the order of few lines."""
    for _ in range(count):
        name, place = (str(rng.choice(_NAMES)) for _ in range(2))
        lines = [f"Dear {name}, thank you for your order. Please find the items below."]
        lines += [
            f"Item: {rng.choice(_THINGS)}. Quantity: {rng.integers(1, 9)}. Delivered in full, no remarks."
            for _ in range(40)
        ]
        checked = f"This delivery was checked by {place} on day {rng.integers(31)}."
        lines.insert(int(rng.integers(1, 9)), checked)
        yield "\n".join(lines)


def passages_of(documents: Sequence[str], count: int, generator: np.random.Generator) -> tuple[str, ...]:
    """Passages of `PASSAGE_WORDS` words with their white space, from places drawn over all words.

    Raises:
        ValueError: no document has so many words.
    """
    words = [of_one for of_one in map(words_of, documents) if len(of_one) >= PASSAGE_WORDS]
    if not words:
        raise ValueError(f"no document has {PASSAGE_WORDS} words")
    lengths = np.array([len(of_one) for of_one in words], dtype=np.float64)
    chosen = generator.choice(len(words), size=count, p=lengths / lengths.sum())
    starts = [int(generator.integers(len(words[one]) - PASSAGE_WORDS + 1)) for one in chosen]
    return tuple(
        "".join(words[one][start : start + PASSAGE_WORDS]).strip()
        for one, start in zip(chosen, starts, strict=True)
    )


def own_set(texts: Sequence[str], most: int, seed: int) -> TextSet:
    """The operator's texts, each once, or `most` of them drawn by the seed; of each the first words.

    Raises:
        ValueError: no text has any; empty ones would only make false positives look rare.
    """
    unique = sorted({text for text in texts if text.strip()})
    if not unique:
        raise ValueError("the operator's texts are all empty")
    generator = np.random.default_rng(sampling_seed(seed, "unmarked", "own"))
    drawn = sorted(generator.permutation(len(unique))[:most].tolist())
    cut = tuple("".join(words_of(unique[index])[:OWN_WORDS]) for index in drawn)
    origin = f"texts that the operator gave, {len(drawn):,} of {len(unique):,}; the first {OWN_WORDS:,} words"
    return TextSet("the operator's texts", origin, cut)
