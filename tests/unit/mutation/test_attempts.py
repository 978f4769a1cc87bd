"""What the mutation tool says of changes in a small project, with real runs of pytest."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CODE = """
import os

def share(part, whole):
    if whole == 0:
        return 0.0
    return part / whole

def count(limit):
    place = 0
    while place < limit:
        place += 1
    return place

def spoken():
    os.write(1, b"x" * count(3))

def alone(value):
    return value + 1
"""
TESTS = """
import subprocess, sys, time
import pytest
from code_under_test.work import count, share

@pytest.fixture(scope="module")
def half():
    return share(1, 2)

seen = []

def test_that_fails_unless_it_is_the_first():
    time.sleep(0.3)  # so that it is not, where the fastest comes first
    count(1)
    assert not seen

def test_half(half):
    assert half == 0.5

def test_third():
    seen.append(count(1))

def test_count():
    seen.append(2)
    assert count(2) == 2

def test_spoken():
    code = "from code_under_test.work import spoken; spoken()"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"xxx"
"""
RUN = """
import json, sys
from pathlib import Path
from tests.harness.mutation import run, worker
from tests.harness.mutation.changes import changes_of
from tests.harness.mutation.covered import Covered
run._LIBRARIES, worker._SPARE = ('_hypothesis_pytestplugin',), 3.0
run.begin()
folder = Path(sys.argv[1])
covered = Covered()
covered.add(worker.measure(folder, "tests/test_work.py", ["code_under_test"]))
said = {}
for change in changes_of(folder / "snapshot", "code_under_test/work.py"):
    if change.what not in sys.argv[2:]:
        continue
    outcome = worker.attempt(folder, change, covered.tests_of(change, 100.0))
    said[change.what] = outcome["verdict"], outcome["test"].rpartition("::")[2]
print(json.dumps(said))
"""
QUICK = (
    ("part / whole -> part * whole", "caught", "test_half"),  # run by a fixture of the module
    ("0.0 -> 1.0", "uncovered", ""),
    ("value + 1 -> value - 1", "uncovered", ""),
    ("0 -> -1", "survived", ""),
)
SLOW = (
    ("place < limit -> place <= limit", "caught", "test_count"),
    ("place += 1 -> pass", "timeout", ""),
    ("3 -> 4", "caught", "test_spoken"),  # run by another process
)


def said(folder: Path, changes: list[str]) -> dict[str, list[str]]:
    for name, text in {
        "code_under_test/work.py": CODE,
        "tests/test_work.py": TESTS,
        "pytest.ini": "[pytest]\npythonpath = .\naddopts = --import-mode=importlib\n",
    }.items():
        path = folder / "snapshot" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = [sys.executable, "-c", RUN, str(folder), *changes]
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "_hypothesis_pytestplugin"}
    answer = subprocess.run(
        command, cwd=ROOT, env=os.environ | plugins, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stderr
    found: dict[str, list[str]] = json.loads(answer.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("expected", [QUICK, pytest.param(SLOW, marks=pytest.mark.slow)])
def test_a_change_is_caught_by_the_test_that_covers_it(
    tmp_path: Path, expected: tuple[tuple[str, str, str], ...]
) -> None:
    found = said(tmp_path, [change for change, _, _ in expected])
    assert found == {change: [verdict, test] for change, verdict, test in expected}
