"""Runs of test files in a copy of the working tree, where a source file can be another one."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

from tests.harness.mutation.changes import Change

_COVERAGE = """[run]
include = {tree}/*
omit = {tree}/tests/*
data_file = {folder}/data
parallel = true
concurrency = thread,multiprocessing
sigterm = true
patch = subprocess,fork,_exit
disable_warnings = no-data-collected,module-not-measured,already-imported,module-not-imported,couldnt-parse
"""
_BYTES = 6 << 30  # of data, a process
_FILE, _SPARE, _SLOWER, _SHARED = 600.0, 60.0, 3.0, 5.0
"""CPU seconds of a test file, and of a change beside those of its tests; how much slower these may be; and
how long may be waited for a CPU second, as cores are shared."""


@dataclass(frozen=True)
class Ran:
    """How a run ended: passed, failed (which test), timeout, or uncovered where there was nothing to run."""

    verdict: str
    test: str = ""
    seconds: float = 0.0

    @property
    def caught(self) -> bool:
        """Whether a test failed, or the tests did not end."""
        return self.verdict in ("failed", "timeout")


def tree_files(root: Path) -> list[str]:
    """Tracked files, and new ones that git does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    listed = subprocess.check_output(command, cwd=root, text=True).split("\0")
    return sorted(name for name in listed if name and os.path.lexists(root / name))


class Copy:
    """A copy of the tree below a folder, with what its tests leave beside it."""

    def __init__(self, root: Path, names: Iterable[str], folder: Path) -> None:
        self._tree, self._folder, self._version = folder.resolve() / "tree", folder.resolve(), 0
        for name in names:
            target = self._tree / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target, follow_symlinks=False)

    def measure(self, test_file: str) -> tuple[float, dict[str, list[int]]] | None:
        """CPU seconds of a test file, and the lines that it runs by source file; None where it fails."""
        folder = self._folder / "coverage"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        settings = folder / "settings"
        settings.write_text(_COVERAGE.format(tree=self._tree, folder=folder))
        ran = self._run([test_file], _FILE, "coverage", "run", f"--rcfile={settings}", "-m")
        if ran.verdict != "passed":
            return None
        whole = coverage.Coverage(config_file=str(settings))
        whole.combine([str(folder)])
        data = whole.get_data()
        paths = data.measured_files()
        return ran.seconds, {
            Path(path).relative_to(self._tree).as_posix(): data.lines(path) or [] for path in paths
        }

    def attempt(self, change: Change, seconds: dict[str, float]) -> Ran:
        """Runs test files (CPU seconds of each) with one source file changed, in this order, until a test
        fails.

        It says nothing where it fails unchanged too, as some tests do by bad luck; then the rest is run.
        """
        left = dict(seconds)
        while left:
            most = _SPARE + _SLOWER * sum(left.values())
            with self._changed(change):
                ran = self._run(list(left), most)
            file = ran.test.partition("::")[0]
            if file not in left or self._run([ran.test], most).verdict == "passed":
                return ran
            del left[file]
        return Ran("passed")

    @contextmanager
    def _changed(self, change: Change) -> Iterator[None]:
        target = self._tree / change.path
        original, times = target.read_bytes(), target.stat()
        self._version += 1
        target.write_bytes(change.apply(original))
        # A time of its own: compiled files are matched by the second and the size of their source.
        os.utime(target, (times.st_atime, times.st_mtime + self._version))
        try:
            yield
        finally:
            target.write_bytes(original)
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))

    def _run(self, tests: Sequence[str], cpu_seconds: float, *below: str) -> Ran:
        temporary, log = self._folder / "tmp", self._folder / "log"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir()
        environment = {**os.environ, "PYTHONPATH": str(self._tree), "TMPDIR": str(temporary)}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        options = ["-x", "-q", "-rfE", "--tb=no", "--hypothesis-seed=0", "-m", "not slow and not gpu"]
        command = [sys.executable, "-m", *below, "pytest", *options, "-p", "no:cacheprovider", *tests]
        with log.open("w") as out:
            process = subprocess.Popen(
                command, cwd=self._tree, env=environment, start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=out, stderr=out,
            )  # fmt: skip
        with suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (int(cpu_seconds), int(cpu_seconds) + 5))
            resource.prlimit(process.pid, resource.RLIMIT_DATA, (_BYTES, _BYTES))
        try:
            code, used = _wait(process.pid, time.monotonic() + _SHARED * cpu_seconds)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # and what it started
            process.wait()
        if code in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return Ran("passed", seconds=used)
        if code == -signal.SIGXCPU:
            return Ran("timeout")
        if code == pytest.ExitCode.USAGE_ERROR:
            raise RuntimeError(log.read_text()[-2000:])
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", log.read_text(), re.M)
        return Ran("failed", failed[1] if failed else f"pytest ended with {code}")


def _wait(pid: int, until: float) -> tuple[int, float]:
    """How a process ended, and its CPU seconds with those that it waited for."""
    while time.monotonic() < until:
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime
        time.sleep(0.05)
    return -signal.SIGXCPU, 0.0
