"""What test files cover and what became of changes, kept as long as what they come from stays the same."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from tests.harness.mutation.changes import Change
from tests.harness.mutation.runs import Copy, Ran, tree_files

_MOST_SECONDS = 120.0  # of CPU, measured with coverage, which takes twice as long
_Job = TypeVar("_Job")
_Result = TypeVar("_Result")
Covered = dict[str, tuple[float, dict[str, list[int]]]]
"""Of each test file its CPU seconds, and the lines that it runs by source file."""


def tests_of(change: Change, covered: Covered) -> dict[str, float]:
    """The test files that run a changed line, by what each uses of its file, until they take long."""
    own = set(range(change.first, change.last + 1))
    of_file = {name: (seconds, lines.get(change.path, [])) for name, (seconds, lines) in covered.items()}
    used = {name: len(lines) for name, (_, lines) in of_file.items() if own.intersection(lines)}
    least = min(used.values(), default=0)
    order = sorted(used, key=lambda name: ((least - used[name]) / of_file[name][0], of_file[name][0]))
    chosen: dict[str, float] = {}
    for name in order:
        if sum(chosen.values()) < _MOST_SECONDS:
            chosen[name] = of_file[name][0]
    return chosen


class Session:
    """Runs over copies of the tree. What it learns is kept at once: a run that is stopped goes on there."""

    def __init__(self, root: Path, temporary: Path, jobs: int) -> None:
        self._root, self._jobs, self._names = root, jobs, tree_files(root)
        self._kept = root / "build/mutation.json"
        self._records: dict[str, list[Any]] = (
            json.loads(self._kept.read_text()) if self._kept.exists() else {}
        )
        self._copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(jobs):
            self._copies.put(Copy(root, self._names, temporary / str(number)))

    def cover(self, tests: Sequence[str]) -> Covered:
        """What every test file covers, measured where it is not known."""
        files = [one for one in self._names if one.startswith(tuple(tests)) and Path(one).match("test_*.py")]
        shared = [name for name in self._names if Path(name).match("tests/**/conftest.py")]
        for name, measured in self._done([name for name in files if not self._known(name)], Copy.measure):
            if measured is None:
                print(f"mutate: {name} does not pass unchanged and is left out", file=sys.stderr)
            else:
                self._keep(name, measured, [name, *shared, *measured[1]])
        return {name: known for name in files if (known := self._known(name))}

    def attempt(self, changes: Sequence[Change], covered: Covered) -> dict[str, Ran]:
        """What became of each change, tried where no test is known that caught it."""
        outcomes = {one.key: Ran(*known) for one in changes if (known := self._known(one.key))}

        def tried(copy: Copy, change: Change) -> Ran:
            tests = tests_of(change, covered)
            return copy.attempt(change, tests) if tests else Ran("uncovered")

        for change, ran in self._done([one for one in changes if one.key not in outcomes], tried):
            outcomes[change.key] = ran
            if ran.caught:
                self._keep(change.key, (ran.verdict, ran.test), [change.path, ran.test.partition("::")[0]])
        return outcomes

    def _done(
        self, jobs: Sequence[_Job], work: Callable[[Copy, _Job], _Result]
    ) -> Iterator[tuple[_Job, _Result]]:
        """Jobs and their results as they end, each with a line on standard error."""

        def done(job: _Job) -> _Result:
            copy = self._copies.get()
            try:
                return work(copy, job)
            finally:
                self._copies.put(copy)

        with ThreadPoolExecutor(self._jobs) as threads:
            futures = {threads.submit(done, job): job for job in jobs}
            try:
                for number, future in enumerate(as_completed(futures), start=1):
                    print(f"[{number}/{len(jobs)}] {futures[future]}", file=sys.stderr, flush=True)
                    yield futures[future], future.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _known(self, name: str) -> Any:
        record, files, digest = self._records.get(name, (None, (), ""))
        return record if digest == self._digest(files) else None

    def _keep(self, name: str, record: Any, files: Iterable[str]) -> None:
        listed = sorted(files)
        self._records[name] = [record, listed, self._digest(listed)]
        self._kept.parent.mkdir(exist_ok=True)
        self._kept.write_text(json.dumps(self._records))

    def _digest(self, names: Iterable[str]) -> str:
        paths = [self._root / name for name in names]
        contents = [path.read_bytes() if path.is_file() else b"" for path in paths]
        return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).hexdigest()
