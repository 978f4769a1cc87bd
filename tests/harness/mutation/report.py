"""The table of a run, in Markdown, and the reasons of `tests/mutation_answers.yml`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.harness.mutation.changes import Change

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


@dataclass(frozen=True)
class Row:
    """One change, what became of it, and why that is right where nobody caught it."""

    folder: str
    change: Change
    outcome: dict[str, Any]
    reason: str


def caught(outcome: Mapping[str, Any]) -> bool:
    """Whether a test failed, or the tests did not end."""
    return outcome["verdict"] in ("caught", "timeout")


def show(rows: Sequence[Row], code_lines: Mapping[str, int], least: float) -> bool:
    """Prints the changes and the shares; whether enough were caught and every other one has an answer."""
    print("| line | change | verdict | by |\n|---|---|---|---|")
    for row in rows:
        place = f"{row.change.path}:{row.change.line}"
        by = f"`{row.outcome['test']}`" if row.outcome["test"] else row.reason
        print(f"| {place} | {_cell(row.change.what)} | {row.outcome['verdict']} | {_cell(by, code=False)} |")
    print("\n| folder | lines | changed | caught | others that are answered |\n|---|---|---|---|---|")
    shares = []
    for folder, lines in code_lines.items():
        some = [row for row in rows if row.folder == folder]
        number = sum(caught(row.outcome) for row in some)
        answered = sum(not caught(row.outcome) and bool(row.reason) for row in some)
        shares.append((lines, number / max(1, len(some))))
        print(f"| {folder} | {lines:,} | {len(some)} | {number} | {answered} |")
    total = sum(caught(row.outcome) for row in rows)
    weighted = sum(lines * share for lines, share in shares) / sum(lines for lines, _ in shares)
    percent = 100 * total / max(1, len(rows))
    print(f"\n{total} of {len(rows)} caught ({percent:.0f} %; {100 * weighted:.0f} % weighted by lines)")
    opened = [row for row in rows if not caught(row.outcome) and not row.reason]
    for row in opened:
        print(f"mutate: {row.outcome['verdict']}, and no answer: {row.change.key}")
    return percent >= least and not opened


def _cell(text: str, code: bool = True) -> str:
    text = text.replace("|", "\\|")
    return f"`{text}`" if code else text
