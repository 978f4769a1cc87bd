"""Tests in a fork of this process, which has the large libraries loaded but none of the code under test."""

import ctypes
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.harness.mutation.tree import ROOT, Tree


class Reporter:
    """Chooses and orders the tests, and notes how they went."""

    def __init__(self, tests: Sequence[str]) -> None:
        self._order = {test: place for place, test in enumerate(tests) if "::" in test}
        self.seconds: dict[str, float] = {}
        self.failed = ""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [
            item for item in items if not any("smollm2" in name for name in getattr(item, "fixturenames", ()))
        ]
        if self._order:
            items[:] = [item for item in items if item.nodeid in self._order]
            items.sort(key=lambda item: self._order[item.nodeid])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid
            self.seconds.pop(report.nodeid, None)
        elif report.passed and (report.when == "setup" or report.nodeid in self.seconds):
            self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        elif report.skipped:
            self.seconds.pop(report.nodeid, None)


_LIBRARIES = (
    "torch", "torch.distributed.tensor", "transformers.modeling_utils",
    "transformers.integrations.hub_kernels", "transformers.models.auto.modeling_auto", "numpy",
    "scipy.stats", "fastapi.testclient", "pydantic_settings", "httpx", "redis", "llguidance.torch",
    "tokenizers", "structlog", "typer", "uvicorn", "openai", "schemathesis", "prometheus_client",
    "cryptography.hazmat.primitives.ciphers.aead", "lxml.html", "docx", "pypdf",
)  # fmt: skip
_BYTES = 6 << 30  # of data, a process
_ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER


@dataclass
class Ran:
    """How a run of tests ended, with the seconds of each test that passed."""

    verdict: str  # passed, failed, timeout
    test: str = ""
    seconds: dict[str, float] = field(default_factory=dict)


def begin() -> None:
    """Makes this process one that loads libraries and is forked; SIGTERM ends it with all that it started."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to every process of the terminal
    signal.signal(signal.SIGTERM, _end)
    ctypes.CDLL(None).prctl(_ADOPT_ORPHANS, 1, 0, 0, 0)
    sys.path[:] = filter(_is_foreign, sys.path)
    for name in _LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)


def _end(*_: object) -> None:
    _end_processes()
    os._exit(1)


def _is_foreign(entry: str) -> bool:
    return Path(entry).resolve() != ROOT


def run_tests(tree: Tree, tests: Sequence[str], seconds: float, measure: Any = None) -> Ran:
    """Runs test files, or tests in the order given, until one fails; `measure` is a plugin for pytest.

    Args:
        seconds: Of CPU for each process; the whole may take four times as long, as cores are shared.
    """
    shutil.rmtree(tree.temporary, ignore_errors=True)
    tree.temporary.mkdir()
    answer = tree.temporary / "answer.json"
    child = os.fork()
    if not child:
        try:
            _become_pytest(tree, tests, seconds, measure, answer)
        finally:
            os._exit(70)
    try:
        status = _wait(child, time.monotonic() + 4 * seconds)
    finally:
        _end_processes()
    if status is None or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return Ran("timeout")
    if not answer.exists():
        return Ran("failed", f"the process ended with status {os.waitstatus_to_exitcode(status)}")
    return Ran(**json.loads(answer.read_text()))


def _wait(child: int, until: float) -> int | None:
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.05)
    return None


def _end_processes() -> None:
    """Kills what is left of the tests; services that they started belong to this process by now."""
    left = psutil.Process().children(recursive=True)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=10)


def _become_pytest(tree: Tree, tests: Sequence[str], seconds: float, measure: Any, answer: Path) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.chdir(tree.root)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    path = os.pathsep.join(
        [str(tree.root), *filter(_is_foreign, os.environ.get("PYTHONPATH", "").split(":"))]
    )
    os.environ |= {"PYTHONPATH": path, "TMPDIR": str(tree.temporary)}
    sys.dont_write_bytecode = False
    sys.path.insert(0, str(tree.root))
    for name in [name for name in sys.modules if name.split(".")[0] in {"tests", "ttmark"}]:
        del sys.modules[name]
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
    resource.setrlimit(resource.RLIMIT_DATA, (_BYTES, _BYTES))
    log = os.open(tree.temporary / "log", os.O_WRONLY | os.O_CREAT)
    for number in (1, 2):
        os.dup2(log, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    reporter = Reporter(tests)
    if measure:
        measure.start()
    options = ["-x"] if measure is None else []
    code = pytest.main(
        [
            *dict.fromkeys(test.split("::")[0] for test in tests),
            *options,
            *("-q", "--tb=short", "--hypothesis-seed=0", "-m", "not slow and not gpu"),
            *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
            *("-o", f"cache_dir={tree.temporary}/cache", f"--basetemp={tree.temporary}/pytest"),
        ],
        plugins=[reporter, *([measure] if measure else [])],
    )
    if measure:
        measure.stop(reporter.seconds)
    verdict = "passed" if code in (0, 5) else "failed"
    test = reporter.failed or ("" if verdict == "passed" else f"pytest ended with {code}")
    answer.write_text(json.dumps({"verdict": verdict, "test": test, "seconds": reporter.seconds}))
    sys.stdout.flush()
    os._exit(0)
