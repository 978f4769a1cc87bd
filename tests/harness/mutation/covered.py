"""Which tests run which lines: coverage with a context for each test and each shared fixture."""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import coverage
import pytest

from tests.harness.mutation.changes import Change

_CONTEXT = "MUTATION_CONTEXT"
_SETTINGS = """[run]
include = {include}
data_file = {folder}/data
parallel = true
context = ${{{context}}}
concurrency = thread,multiprocessing
sigterm = true
patch = fork,_exit
disable_warnings = no-data-collected,module-not-measured,already-imported,module-not-imported,couldnt-parse
"""


class Measure:
    """A plugin for pytest that says at each moment to whom the lines belong that run."""

    def __init__(self, folder: Path, root: Path, folders: Sequence[str]) -> None:
        """Args:
        folder: Is made, for the data of all processes and the answer, `map.json`.
        root: The copy of the tree.
        folders: Whose lines count.
        """
        self._folder, self._root = folder, root
        self._include = ",".join(f"{root}/{name}/*" for name in folders)
        self._users: dict[str, list[str]] = {}
        self._context = ""

    def start(self) -> None:
        """Before anything of the tree is imported."""
        self._folder.mkdir()
        settings = self._folder / "settings"
        settings.write_text(_SETTINGS.format(include=self._include, folder=self._folder, context=_CONTEXT))
        os.environ["COVERAGE_PROCESS_START"] = str(settings)  # read by the processes that tests start
        self._coverage = coverage.Coverage(config_file=str(settings), context="")
        self._coverage.start()

    def _enter(self, context: str) -> str:
        before, self._context = self._context, context
        os.environ[_CONTEXT] = context
        self._coverage.switch_context(context)
        return before

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[Any]:
        before = self._enter(item.nodeid)
        try:
            return (yield)
        finally:
            for name in getattr(item, "fixturenames", ()):
                self._users.setdefault(f"fixture {name}", []).append(item.nodeid)
            self._enter(before)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[Any]:
        if fixturedef.scope == "function":
            return (yield)
        before = self._enter(f"fixture {fixturedef.argname}")
        try:
            return (yield)
        finally:
            self._enter(before)

    def stop(self, seconds: dict[str, float]) -> None:
        """Writes which of the tests that passed run which lines; those of an import have no test."""
        self._coverage.stop()
        self._coverage.save()
        os.environ.pop("COVERAGE_PROCESS_START")
        whole = coverage.Coverage(config_file=str(self._folder / "settings"), context="")
        whole.combine([str(self._folder)], keep=True)
        data = whole.get_data()
        tests = list(seconds)
        number = {test: place for place, test in enumerate(tests)}
        lines: dict[str, dict[int, list[int]]] = {}
        for path in data.measured_files():
            found = lines.setdefault(Path(path).relative_to(self._root).as_posix(), {})
            for line, contexts in data.contexts_by_lineno(path).items():
                users = {user for context in contexts for user in self._users.get(context, [context])}
                found[line] = sorted(number[user] for user in users if user in number)
        (self._folder / "map.json").write_text(json.dumps({"seconds": seconds, "lines": lines}))


@dataclass
class Covered:
    """What all test files cover: seconds of each test, and its lines by file."""

    seconds: dict[str, float] = field(default_factory=dict)
    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    importers: dict[str, set[str]] = field(default_factory=dict)
    imported: dict[str, set[int]] = field(default_factory=dict)

    def add(self, record: dict[str, Any]) -> None:
        """Takes in what one test file covers."""
        tests = list(record["seconds"])
        self.seconds |= record["seconds"]
        for path, lines in record["lines"].items():
            known = self.lines.setdefault(path, {})
            self.importers.setdefault(path, set()).update(tests)
            self.imported.setdefault(path, set()).update(int(line) for line in lines if not lines[line])
            for line, numbers in lines.items():
                known.setdefault(int(line), set()).update(tests[number] for number in numbers)

    def tests_of(self, change: Change, most: float) -> dict[str, float]:
        """The tests that may see a change and their seconds, fastest first, of `most` seconds together.

        A line that runs at an import is seen by whoever uses its file, or else by whoever imports it.
        """
        lines, imported = self.lines.get(change.path, {}), self.imported.get(change.path, set())
        own = range(change.first, change.last + 1)
        found = {test for line in own for test in lines.get(line, ())}
        if not imported.isdisjoint(own):
            found.update(*(tests for line, tests in lines.items() if line not in imported))
            found = found or self.importers[change.path]
        fastest = sorted(found, key=lambda test: (self.seconds[test], test))
        sums = accumulate(self.seconds[test] for test in fastest)
        return {test: self.seconds[test] for test, total in zip(fastest, sums, strict=True) if total <= most}
