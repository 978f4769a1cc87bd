"""Shows how far the making of a model is."""

from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


class ModelProgress:
    """A bar on a terminal, elsewhere a line for each thing that is done."""

    def __init__(self, console: Console, model: str) -> None:
        self._console = console
        self._model = model
        self._doing = ""
        columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, doing: str, share: float | None) -> None:
        """What is being done, and the share of it that is done."""
        if doing != self._doing:
            self._doing = doing
            self._bar.start()
            self._task = self._bar.add_task(f"model {self._model}: {doing}", total=None)
            if self._bar.disable:
                self._console.print(f"model {self._model}: {doing} ...")
        self._bar.update(self._task, completed=share, total=None if share is None else 1.0)
