"""A run: a folder of generated texts, intermediate figures and results that grows and resumes."""

import fcntl
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from ttmark.evaluation.experiment_cells import Cell
from ttmark.evaluation.json_files import append_lines, read_lines


@dataclass(frozen=True, slots=True)
class Completion:
    """One text.

    Attributes:
        index: its number in the cell: prompt, key and seed follow from it.
        token_ids: tokens of the completion, without the prompt.
        watermarked_blocks: blocks that carry the watermark.
        seconds: wall time since the text before it was finished; their sum is the time that the texts took.
        rows: rows of forward passes since then, prompts included; likewise.
    """

    index: int
    token_ids: tuple[int, ...]
    watermarked_blocks: int
    seconds: float
    rows: int

    def tokens(self, length: int | None = None) -> NDArray[np.int64]:
        """The first `length` tokens."""
        return np.array(self.token_ids[:length], dtype=np.int64)


OnText = Callable[[Completion], None]


class TextSource(Protocol):
    """What makes the texts of a cell."""

    def generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        """Makes the texts with these numbers and hands each over when it is finished."""
        ...


class CompletionFile:
    """The texts of one cell."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[int, Completion]:
        """Texts by index; a line that was cut off by a crash is left out."""
        records = (line | {"token_ids": tuple(line["token_ids"])} for line in read_lines(self._path))
        return {record["index"]: Completion(**record) for record in records}

    def append(self, text: Completion) -> None:
        """Writes one text; it is on disk when this returns."""
        append_lines(self._path, [asdict(text)])

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps other processes from adding texts to this cell meanwhile."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield


class Run:
    """Texts of one model, prompt file and seed; what is there already is never generated again."""

    def __init__(self, folder: Path, source: TextSource, seed: int, progress: Progress) -> None:
        self.folder = folder
        self.seed = seed
        self.progress = progress
        self._source = source

    def stored(self, cell: Cell) -> list[Completion]:
        """All texts of a cell that are there; time and rows of a batch belong to all its texts together."""
        return list(self._file(cell).read().values())

    def texts(self, cell: Cell, count: int) -> list[Completion]:
        """The first `count` texts of a cell, in order."""
        file = self._file(cell)
        found = file.read()
        if any(index not in found for index in range(count)):
            with file.lock():
                found = file.read()  # another process may have made them meanwhile
                self._generate(cell, [index for index in range(count) if index not in found], file)
                found = file.read()
        return [found[index] for index in range(count)]

    def _file(self, cell: Cell) -> CompletionFile:
        return CompletionFile(self.folder / "texts" / f"{cell.name}.jsonl")

    def _generate(self, cell: Cell, missing: list[int], file: CompletionFile) -> None:
        if not missing:
            return
        task = self.progress.add_task(cell.title, total=len(missing))

        def on_text(text: Completion) -> None:
            file.append(text)
            self.progress.advance(task)

        self._source.generate(cell, missing, self.seed, on_text)
        self.progress.remove_task(task)


PromptRows = Callable[[int], int]
"""Tokens of the prompt of a text, by the text's number."""


def seconds_per_thousand(texts: Sequence[Completion]) -> float:
    """Wall time per 1,000 tokens."""
    return 1000 * sum(text.seconds for text in texts) / sum(len(text.token_ids) for text in texts)


def rows_per_token(texts: Sequence[Completion], prompt_rows: PromptRows) -> float:
    """Rows of forward passes per generated token, without the prompts'."""
    prompts = sum(prompt_rows(text.index) for text in texts)
    return (sum(text.rows for text in texts) - prompts) / sum(len(text.token_ids) for text in texts)
