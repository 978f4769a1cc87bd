"""A process with a copy of the tree of its own: it measures test files, and tries changes."""

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.harness.mutation.changes import Change
from tests.harness.mutation.covered import Measure
from tests.harness.mutation.run import Ran, run_tests
from tests.harness.mutation.tree import Tree

_FEW = 40  # tests; most changes are caught by them
_SPARE = 20.0  # seconds, for starting
_SLOWER = 3.0  # than measured, by CPU time: then it hangs
_FILE_SECONDS = 600.0


@dataclass(frozen=True)
class Outcome:
    """What became of a change: caught, timeout, survived or uncovered, and by which of how many tests."""

    verdict: str
    test: str
    tests: int
    seconds: float


@cache
def _tree(folder: Path) -> Tree:
    return Tree(folder / "snapshot", Path(tempfile.mkdtemp(dir=folder)))


def measure(folder: Path, test_file: str, folders: Sequence[str]) -> dict[str, Any] | None:
    """What the tests of a file cover, or None where they take too long."""
    tree = _tree(folder)
    data = tree.temporary / "coverage"
    run_tests(tree, [test_file], _FILE_SECONDS, Measure(data, tree.root, folders))
    answer = data / "map.json"
    return json.loads(answer.read_text()) if answer.exists() else None


def attempt(folder: Path, change: Change, seconds_of: dict[str, float]) -> dict[str, Any]:
    """Runs the tests that cover a changed line, in the order given, until one fails.

    That one must also fail alone, and pass alone where nothing is changed: else it says nothing, as tests
    that depend on others or on luck do, and the rest is run.
    """
    tree, begin, trusted = _tree(folder), time.monotonic(), dict(seconds_of)
    changed = change.apply((tree.root / change.path).read_bytes())
    while True:
        with tree.changed(change.path, changed):
            ran = _run(tree, trusted)
            alone = ran.test in trusted
            again = _run(tree, {ran.test: trusted[ran.test]}) if alone else ran
        if not alone:
            break
        if again.verdict == "failed" and _run(tree, {ran.test: trusted[ran.test]}).verdict == "passed":
            break
        del trusted[ran.test]
    verdict = {"passed": "survived", "failed": "caught"}.get(ran.verdict, ran.verdict)
    verdict = verdict if seconds_of else "uncovered"
    return asdict(Outcome(verdict, ran.test, len(seconds_of), round(time.monotonic() - begin, 1)))


def _run(tree: Tree, seconds_of: dict[str, float]) -> Ran:
    """In parts: one, then a few, so that the files of all the others are seldom loaded."""
    tests, ran = list(seconds_of), Ran("passed")
    for part in (tests[:1], tests[1:_FEW], tests[_FEW:]):
        if part and ran.verdict == "passed":
            ran = run_tests(tree, part, _SPARE + _SLOWER * sum(seconds_of[test] for test in part))
    return ran
