"""The folder in which a run keeps answers and p-values, so that it goes on where it was interrupted."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from rich.progress import Progress

from ttmark.evaluation.json_files import append_lines, read_lines
from ttmark.evaluation.report.result import groups
from ttmark.shared.keys.records import UnlockedKey

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
        ask: what is asked.
        progress: shows how far each group of questions is.
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
