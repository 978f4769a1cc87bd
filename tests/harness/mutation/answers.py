"""Why nobody needs to catch some changes: `tests/mutation_answers.yml`."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

_FIELDS = {"file", "line", "change", "reason"}


@dataclass(frozen=True)
class Answer:
    """The reason why a change may survive, by the text of its line."""

    file: str
    line: str
    change: str
    reason: str

    @property
    def key(self) -> str:
        """As `Change.key`."""
        return f"{self.file} | {self.line} | {self.change}"


def read_answers(path: Path) -> list[Answer]:
    """All answers."""
    entries = (yaml.safe_load(path.read_text()) if path.exists() else None) or []
    for number, entry in enumerate(entries, start=1):
        if entry.keys() != _FIELDS or not all(isinstance(value, str) and value for value in entry.values()):
            raise ValueError(f"{path.name}, entry {number}: needs the texts {', '.join(sorted(_FIELDS))}.")
    return [Answer(**entry) for entry in entries]


def stale(answers: Iterable[Answer], keys: Iterable[str]) -> list[Answer]:
    """The answers to changes that are no longer possible, as the line was edited or is gone."""
    known = set(keys)
    return [answer for answer in answers if answer.key not in known]
