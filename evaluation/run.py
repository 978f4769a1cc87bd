"""A run: a folder of generated texts and results that grows and resumes."""

from pathlib import Path

from rich.progress import Progress

from evaluation.cells import Cell
from evaluation.completions import Completion, CompletionFile
from evaluation.sources import TextSource


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
