"""Marked answers as somebody may send them to the detection: cut, edited, or among texts by people."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import orjson
from numpy.typing import NDArray

from ttmark.evaluation.experiment_cells import sampling_seed
from ttmark.evaluation.json_files import read_lines
from ttmark.evaluation.synonyms import Synonyms
from ttmark.evaluation.text_edits import EDITS, WORD_EDITS, Material
from ttmark.shared.tokenization import TextTokenizer

AS_WRITTEN = "as written"
SHARES = (0.1, 0.25)
PEOPLE = 600
"""Tokens by people around an answer."""
MESSAGES = 5
"""Of a conversation."""


@dataclass(frozen=True, slots=True)
class Document:
    """Words that the detection is sent.

    Attributes:
        change: what became of the answer.
        tokens: of the answer before that; 0: of any length.
        key: that marked it (hex).
        later: further messages, if it is a conversation, each with its key.
    """

    change: str
    tokens: int
    text: str
    key: str
    later: tuple[tuple[str, str], ...] = ()

    @property
    def messages(self) -> tuple[tuple[str, str], ...]:
        """The words and the key of each."""
        return ((self.text, self.key), *self.later)


def read_documents(file: Path) -> list[Document]:
    """What `write_documents` wrote."""
    return [Document(**line | {"later": tuple(map(tuple, line["later"]))}) for line in read_lines(file)]


def write_documents(documents: Sequence[Document], file: Path) -> None:
    """As JSON lines."""
    file.write_bytes(b"".join(orjson.dumps(asdict(document)) + b"\n" for document in documents))


def documents_of(
    answers: Path,
    tokenizer: TextTokenizer,
    human: Sequence[str],
    lengths: Sequence[int],
    count: int,
    synonyms: Synonyms | None,
) -> Iterator[Document]:
    """The first `count` answers that reach the greatest length: cut, edited, and among texts by people.

    Args:
        answers: JSON lines with `index`, `prf_key` (hex) and the token `ids`.
        synonyms: None leaves out the edit that needs them.

    Raises:
        ValueError: there are fewer answers.
    """
    material, longest = Material.of(human), max(lengths)
    around = [np.array(ids) for ids in map(tokenizer.encode, human) if ids]
    chosen = _long_enough(answers, tokenizer, longest, count)
    for number, (key, whole) in enumerate(chosen):
        ids = whole[:longest]
        for length in lengths:
            yield Document(AS_WRITTEN, length, tokenizer.decode(ids[:length]), key)
        text = tokenizer.decode(ids)
        generator = np.random.default_rng(sampling_seed(0, "changes", number))
        edit = EDITS[WORD_EDITS[number % len(WORD_EDITS)]]
        for share in SHARES:
            edited = edit(text, share, material, generator)
            yield Document(f"{share:.0%} of the words edited", longest, edited, key)
        if synonyms is not None:
            edited = synonyms.put_into(text, SHARES[0], generator)
            yield Document(f"{SHARES[0]:.0%} of the words by synonyms", longest, edited, key)
        people = _tokens_by_people(around, PEOPLE, generator).tolist()
        cut = int(generator.integers(PEOPLE + 1))
        inside = tokenizer.decode([*people[:cut], *ids, *people[cut:]])
        yield Document(f"among {PEOPLE} tokens by people", longest, inside, key)


def _tokens_by_people(
    human: Sequence[NDArray[np.int64]], length: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """So many tokens from a random place; documents follow each other, counted round."""
    pieces: list[NDArray[np.int64]] = []
    have, document = 0, int(generator.integers(len(human)))
    offset = int(generator.integers(max(1, human[document].size)))
    while have < length:
        pieces.append(human[document % len(human)][offset : offset + length - have])
        have += pieces[-1].size
        document, offset = document + 1, 0
    return np.concatenate(pieces)


def as_they_are(answers: Path, tokenizer: TextTokenizer, name: str, count: int) -> Iterator[Document]:
    """The first `count` answers, however long, cut nowhere.

    Raises:
        ValueError: there are fewer answers.
    """
    for key, ids in _long_enough(answers, tokenizer, 1, count):
        yield Document(name, 0, tokenizer.decode(ids), key)


def conversations(answers: Path, tokenizer: TextTokenizer, length: int, count: int) -> Iterator[Document]:
    """`count` of `MESSAGES` answers each, which follow one another in the file, cut to `length` tokens.

    Raises:
        ValueError: there are fewer answers.
    """
    chosen = _long_enough(answers, tokenizer, length, MESSAGES * count)
    said = [(tokenizer.decode(ids[:length]), key) for key, ids in chosen]
    for first in range(0, len(said), MESSAGES):
        (text, key), *later = said[first : first + MESSAGES]
        yield Document(f"{MESSAGES} messages", length, text, key, tuple(later))


def _long_enough(
    answers: Path, tokenizer: TextTokenizer, least: int, count: int
) -> list[tuple[str, list[int]]]:
    """Key and tokens of the first `count` answers that have `least` tokens, in the order of their indices."""
    lines = sorted(read_lines(answers), key=lambda line: int(line["index"]))
    # Without tokens that are no text, which end an answer.
    whole = [
        (line["prf_key"], [token for token in line["ids"] if token not in tokenizer.special_ids])
        for line in lines
    ]
    chosen = [(key, ids) for key, ids in whole if len(ids) >= least][:count]
    if len(chosen) < count:
        raise ValueError(f"{answers} has {len(chosen)} answers of {least} tokens, not {count}")
    return chosen
