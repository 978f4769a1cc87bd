"""What the mutation tool says of changes in a small project, with real runs of pytest."""

import subprocess
from pathlib import Path

import pytest

from tests.harness.mutation import runs
from tests.harness.mutation.changes import Change, changes_of
from tests.harness.mutation.runs import Copy, Ran
from tests.harness.mutation.session import Session
from tests.harness.mutation.session import tests_of as covering

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
import subprocess, sys
import pytest
from code_under_test.work import count, share

@pytest.fixture(scope="module")
def half():
    return share(1, 2)

def test_half(half):
    assert half == 0.5

def test_count():
    assert count(2) == 2

def test_spoken():
    code = "from code_under_test.work import spoken; spoken()"
    assert subprocess.check_output([sys.executable, "-c", code]) == b"xxx"
"""
BAD_LUCK = """
from pathlib import Path
from code_under_test.work import count, share

def test_that_passes_once():
    count(1), share(1, 2)
    marker = Path(__file__).with_name("ran")
    assert not marker.exists()
    marker.touch()
"""
FILES = {
    "code_under_test/work.py": CODE,
    "tests/test_work.py": TESTS,
    "tests/test_luck.py": BAD_LUCK,
    "pytest.ini": "[pytest]\npythonpath = .\naddopts = --import-mode=importlib\n",
}
QUICK = {
    "part / whole -> part * whole": ("failed", "test_half"),  # run by a fixture of the module
    "0.0 -> 1.0": ("uncovered", ""),
    "value + 1 -> value - 1": ("uncovered", ""),
    "0 -> -1": ("passed", ""),
}
SLOW = {
    "place < limit -> place <= limit": ("failed", "test_count"),
    "place += 1 -> pass": ("timeout", ""),
    "3 -> 4": ("failed", "test_spoken"),  # run by another process
}


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize("expected", [QUICK, pytest.param(SLOW, marks=pytest.mark.slow)])
def test_a_change_is_caught_by_the_test_that_covers_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: dict[str, tuple[str, str]]
) -> None:
    monkeypatch.setattr(runs, "_SPARE", 5.0)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take a second to load
    monkeypatch.setenv("PYTEST_PLUGINS", "_hypothesis_pytestplugin")
    write_files(tmp_path)
    copy = Copy(tmp_path, FILES, tmp_path / "copy")
    covered = {name: measured for name in FILES if "test_" in name and (measured := copy.measure(name))}
    said = {}
    for change in changes_of(tmp_path, "code_under_test/work.py"):
        if change.what in expected:
            tests = covering(change, covered)
            ran = copy.attempt(change, tests) if tests else Ran("uncovered")
            said[change.what] = ran.verdict, ran.test.rpartition("::")[2]
    assert said == expected


def test_what_is_known_is_not_measured_again_before_a_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []

    def measure(copy: Copy, name: str) -> tuple[float, dict[str, list[int]]]:
        measured.append(name)
        return 1.0, {"code_under_test/work.py": [2]} if "work" in name else {}

    root = tmp_path / "root"
    root.mkdir()
    subprocess.run(["git", "init", "--quiet", root], check=True)
    write_files(root)
    monkeypatch.setattr(Copy, "measure", measure)
    for changed, again in (
        (None, ["tests/test_luck.py", "tests/test_work.py"]),
        (None, []),
        ("code_under_test/work.py", ["tests/test_work.py"]),
        ("tests/test_luck.py", ["tests/test_luck.py"]),
    ):
        if changed:
            (root / changed).write_text("pass")
        measured.clear()
        covered = Session(root, tmp_path / "copies", 1).cover(["tests/"])
        assert (measured, sorted(covered)) == (again, ["tests/test_luck.py", "tests/test_work.py"])


def test_what_uses_most_of_a_file_in_its_time_comes_first_until_it_takes_long() -> None:
    covered = {
        "imports": (1.0, {"code.py": [1, 5]}),
        "uses": (50.0, {"code.py": [1, 2, 3, 4, 5, 6]}),
        "uses and takes long": (500.0, {"code.py": [1, 2, 3, 4, 5, 6, 7, 8, 9]}),
        "runs other lines": (1.0, {"code.py": [1, 2, 3, 4]}),
        "runs another file": (1.0, {"other.py": [5]}),
    }
    change = Change("code.py", 5, "x = 1", "1 -> 2", 5, 5, 0, 1, "2")
    assert list(covering(change, covered)) == ["uses", "uses and takes long"]
    assert list(covering(change, {"imports": covered["imports"]})) == ["imports"]
