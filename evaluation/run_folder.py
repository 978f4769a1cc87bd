"""A run: a folder of generated texts, intermediate figures and results that grows and resumes."""

import fcntl
import hashlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from ttmark.evaluation.experiment_cells import Cell
from ttmark.evaluation.report import groups
from ttmark.shared.keys.held_keys import UnlockedKey


def read_lines(file: Path) -> list[Any]:
    """What the lines hold; one that was cut off when a process was killed is left out."""
    found = []
    for line in file.read_bytes().splitlines() if file.is_file() else ():
        with suppress(orjson.JSONDecodeError):
            found.append(orjson.loads(line))
    return found


def append_lines(file: Path, values: Iterable[object]) -> None:
    """Adds a line for each value, behind a line that was cut off too; they are on disk when this returns."""
    with file.open("a+b") as lines:
        if lines.seek(0, 2):
            lines.seek(-1, 2)
            if lines.read(1) != b"\n":
                lines.write(b"\n")
        lines.write(b"".join(orjson.dumps(value) + b"\n" for value in values))


@dataclass(frozen=True, slots=True)
class GeneratedText:
    """One text.

    Attributes:
        index: its number in the cell: prompt, key and seed follow from it.
        token_ids: tokens of the completion, without the prompt.
    """

    index: int
    token_ids: tuple[int, ...]


def progress_bars(console: Console | None = None) -> Progress:
    """Bars of what a run makes, which are gone at its end."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)


OnText = Callable[[GeneratedText], None]
OnTokens = Callable[[int], None]


class TextSource(Protocol):
    def generate(
        self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText, on_tokens: OnTokens
    ) -> None:
        """Makes the texts with these numbers, tells of tokens as they come, and hands each text over."""
        ...


@dataclass(frozen=True, slots=True)
class Run:
    """Texts of one model, prompt file and seed; what is there already is never generated again."""

    folder: Path
    source: TextSource
    seed: int
    progress: Progress

    def texts(self, cell: Cell, count: int) -> list[GeneratedText]:
        found = self._read(cell)
        if any(index not in found for index in range(count)):
            path = self._path(cell)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.with_suffix(".lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)  # keeps other processes from adding texts meanwhile
                found = self._read(cell)  # another process may have made them meanwhile
                self._generate(cell, [index for index in range(count) if index not in found])
                found = self._read(cell)
        return [found[index] for index in range(count)]

    def _path(self, cell: Cell) -> Path:
        return self.folder / "texts" / f"{cell.name}.jsonl"

    def _read(self, cell: Cell) -> dict[int, GeneratedText]:
        """Texts by index; a line that was cut off by a crash is left out."""
        lines = read_lines(self._path(cell))
        return {line["index"]: GeneratedText(line["index"], tuple(line["token_ids"])) for line in lines}

    def _generate(self, cell: Cell, missing: list[int]) -> None:
        if not missing:
            return
        task = self.progress.add_task(cell.title, total=len(missing))

        def on_text(text: GeneratedText) -> None:
            append_lines(self._path(cell), [asdict(text)])
            self.progress.advance(task, 1 - len(text.token_ids) / cell.tokens)

        def on_tokens(count: int) -> None:  # many texts are written at once, and end at about the same time
            self.progress.advance(task, count / cell.tokens)

        self.source.generate(cell, missing, self.seed, on_text, on_tokens)
        self.progress.remove_task(task)


About = TypeVar("About")
Ask = Callable[[About, Sequence[str]], list[float]]
"""A number for each text in one question about something, say a key."""

Detect = Ask[UnlockedKey]
"""log10 p of each text in one question that names this key alone, as the detection service answers it."""

DEPLOYED = "deployed"
_BATCH = 16


class Questions(Generic[About]):
    """Asks each question once; answers are kept by the label of what it is about and the hash of the text.

    Args:
        name: of the file of the answers.
    """

    def __init__(
        self, folder: Path, ask: Ask[About], progress: Progress, name: str = "answers.jsonl"
    ) -> None:
        self._path = folder / name
        self._ask = ask
        self._progress = progress
        self._known: dict[tuple[str, str], float] = {
            (label, digest): value for label, digest, value in read_lines(self._path)
        }

    def answers(self, title: str, asked: Sequence[tuple[str, About, str]]) -> NDArray[np.float64]:
        """That to every question (label, what it is about, text), in order [questions]."""
        places = [(label, hashlib.sha256(text.encode()).hexdigest()) for label, _, text in asked]
        missing = {
            place: (about, text)
            for place, (_, about, text) in zip(places, asked, strict=True)
            if place not in self._known
        }
        by_label = groups(missing.items(), lambda one: one[0][0])
        task = self._progress.add_task(title, total=len(missing))
        for group in by_label.values():
            for start in range(0, len(group), _BATCH):
                some = group[start : start + _BATCH]
                (_, (about, _)), *_ = some
                values = self._ask(about, [text for _, (_, text) in some])
                found = [(*place, value) for (place, _), value in zip(some, values, strict=True)]
                append_lines(self._path, found)
                self._known |= {(label, digest): value for label, digest, value in found}
                self._progress.advance(task, len(some))
        self._progress.remove_task(task)
        return np.array([self._known[place] for place in places], dtype=np.float64)
