"""Which lines are changed, and how. The choice depends on the texts of lines: an edit elsewhere keeps it."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from tests.harness.mutation.changes import Change, changes_of


def changes_in(root: Path, folder: str) -> list[Change]:
    """Every change of the Python files of a folder."""
    paths = sorted(path.relative_to(root).as_posix() for path in (root / folder).rglob("*.py"))
    return [change for path in paths for change in changes_of(root, path)]


def by_line(changes: Iterable[Change]) -> dict[tuple[str, int], list[Change]]:
    """The changes of each line: file and number."""
    lines: dict[tuple[str, int], list[Change]] = {}
    for change in changes:
        lines.setdefault((change.path, change.line), []).append(change)
    return lines


def sample(changes: Iterable[Change], count: int, seed: int) -> list[Change]:
    """One change each of `count` lines, all lines being equally likely, in the order of the code."""
    seen: Counter[tuple[str, str]] = Counter()
    drawn = []
    for (path, _), choices in by_line(changes).items():
        line = (path, choices[0].code)
        seen[line] += 1
        chosen = min(choices, key=lambda change: _draw(seed, change.key, change.begin - change.end))
        drawn.append((_draw(seed, *line, seen[line]), chosen))
    different: dict[str, Change] = {}
    for _, change in sorted(drawn, key=lambda pair: pair[0]):
        different.setdefault(change.key, change)  # of lines that read alike one: an answer is about all
    first = list(different.values())[:count]
    return sorted(first, key=lambda change: (change.path, change.line))


def _draw(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()
