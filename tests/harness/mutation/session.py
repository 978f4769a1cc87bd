"""One run of the tool: workers on copies of a snapshot; what they found is kept for the next run."""

import hashlib
import json
import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tests.harness.mutation import worker
from tests.harness.mutation.changes import Change
from tests.harness.mutation.covered import Covered
from tests.harness.mutation.report import caught
from tests.harness.mutation.run import begin
from tests.harness.mutation.tree import ROOT, digest, take_snapshot


class Kept:
    """Records by name, written at once, so that a run that is stopped goes on where it was."""

    def __init__(self, folder: Path, snapshot: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._snapshot = folder, snapshot

    def get(self, name: str) -> Any:
        """A record, or None where there is none or a file that it comes from has changed."""
        kept = self._read(name)
        valid = kept and digest(self._snapshot, kept["files"]) == kept["digest"]
        return kept["record"] if valid else None

    def last(self, name: str) -> Any:
        """The record of the last run, or None where there is none."""
        return self._read(name).get("record")

    def put(self, name: str, record: Any, files: Sequence[str]) -> None:
        """Keeps a record that comes from these files."""
        kept = {
            "name": name,
            "files": sorted(files),
            "digest": digest(self._snapshot, files),
            "record": record,
        }
        self._path(name).write_text(json.dumps(kept))

    def _read(self, name: str) -> dict[str, Any]:
        path = self._path(name)
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _path(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"


Job = tuple[str, Callable[[], Any]]


class Session:
    """A context: at its end the processes are gone."""

    def __init__(self, temporary: Path, jobs: int) -> None:
        self.snapshot = temporary / "snapshot"
        self._temporary = temporary
        self._files = take_snapshot(self.snapshot)
        self._records = Kept(ROOT / "build/mutation/coverage", self.snapshot)
        self._outcomes = Kept(ROOT / "build/mutation/outcomes", self.snapshot)
        spawn = multiprocessing.get_context("spawn")
        self._workers = ProcessPoolExecutor(jobs, spawn, initializer=begin)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if error:
            for process in psutil.Process().children():
                process.terminate()
        self._workers.shutdown(cancel_futures=True)

    def cover(self, tests: tuple[str, ...], folders: Sequence[str]) -> Covered:
        """What every test file covers, measured where it is not known."""
        covered = Covered()
        shared = [name for name in self._files if Path(name).match("tests/**/conftest.py")]
        missing: list[Job] = []
        for name in self._files:
            if not name.startswith(tests) or not Path(name).match("test_*.py"):
                continue
            if record := self._records.get(name):
                covered.add(record)
            else:
                missing.append((name, partial(worker.measure, self._temporary, name, folders)))
        for name, record in self._done(missing, lambda record: f"{len(record['seconds'])} tests"):
            self._records.put(name, record, [name, *shared, *record["lines"]])
            covered.add(record)
        return covered

    def attempt(
        self, changes: Iterable[Change], covered: Covered, most: float, *, fresh: bool = False
    ) -> dict[str, dict[str, Any]]:
        """What became of each change, tried where it is not known, with tests of `most` seconds."""
        outcomes: dict[str, dict[str, Any]] = {}
        missing: list[Job] = []
        path_of = {change.key: change.path for change in changes}
        for change in changes:
            tests = covered.tests_of(change, most)
            outcome = None if fresh else self._outcomes.get(change.key)
            if outcome and (caught(outcome) or outcome["tests"] == len(tests)):
                outcomes[change.key] = outcome
            else:
                before = (self._outcomes.last(change.key) or {}).get("test")
                if before in tests:
                    tests = {before: tests[before], **tests}
                missing.append((change.key, partial(worker.attempt, self._temporary, change, tests)))
        known = set(self._files)
        code = [name for name in self._files if name.endswith(".py") and "harness/mutation" not in name]
        for key, outcome in self._done(missing, lambda outcome: f"{outcome['verdict']} {outcome['test']}"):
            # Caught stays caught while file and test are the same. What survived, any new test may catch.
            catcher = outcome["test"].split("::")[0]
            files = [path_of[key], *({catcher} & known)] if caught(outcome) else code
            self._outcomes.put(key, outcome, files)
            outcomes[key] = outcome
        return outcomes

    def _done(self, jobs: Sequence[Job], words: Callable[[Any], str]) -> Iterator[tuple[str, Any]]:
        """The names and results of the jobs as they end, with a line for each on standard error."""
        names = {self._workers.submit(work): name for name, work in jobs}
        for number, future in enumerate(as_completed(names), start=1):
            name, result = names[future], future.result()
            said = words(result) if result else "takes too long, left out"
            print(f"[{number}/{len(jobs)}] {name}: {said}", file=sys.stderr, flush=True)
            if result:
                yield name, result
