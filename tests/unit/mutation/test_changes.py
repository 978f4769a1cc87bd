"""Which changes the mutation tool makes, and which lines it draws."""

import ast
from pathlib import Path

import pytest
import yaml

from tests.harness.mutation.__main__ import ANSWERS, stale
from tests.harness.mutation.changes import Change, by_line, changes_in, changes_of, sample

CHANGED = {
    "a < b": {"a <= b"},
    "a == b": {"a != b"},
    "a in b": {"a not in b"},
    "a and b": {"a or b"},
    "not a": {"a"},
    "a + b": {"a - b"},
    "a % b": {"a * b"},
    "min(a, b)": {"max"},
    "b[1]": {"2", "0"},
    "2.5": {"3.5"},
    "f(flag=True)": {"False"},
    "f('name')": {"'name?'"},
    "a if b else c": {"not (b)"},
    "[a for a in b if a]": {"True"},
}
STATEMENTS = {
    "f(a)": {"pass"},
    "await f(a)": {"pass"},
    "a.b = c": {"pass"},
    "a += b": {"pass", "a -= b"},
    "raise f('The name is missing.')": {"pass"},
    "return a": {"return None"},
    "while a:\n        break": {"not (a)", "continue"},
    "if a:\n        pass": {"not (a)"},
}
UNREAD = (
    "a = b",
    "log.info('name', count=1)",
    "self._log.warning('name')",
    "a: Literal['name'] | None = b",
    "A = Literal['name']",
    "a = f'{b + c} d'",
    "'Some words.'",
    "from a import b",
    "f: A | B\n    class C(A, flag=True):\n        pass",
)


def replacements(folder: Path, source: str) -> set[str]:
    (folder / "code.py").write_text(source)
    return {change.replacement for change in changes_of(folder, "code.py")}


@pytest.mark.parametrize(("code", "expected"), CHANGED.items())
def test_an_expression_becomes_a_wrong_one(tmp_path: Path, code: str, expected: set[str]) -> None:
    assert replacements(tmp_path, f"x = {code}\n") == expected


@pytest.mark.parametrize(("code", "expected"), STATEMENTS.items())
def test_a_statement_becomes_a_wrong_one(tmp_path: Path, code: str, expected: set[str]) -> None:
    assert replacements(tmp_path, f"async def work():\n    {code}\n") == expected


@pytest.mark.parametrize("code", UNREAD)
def test_words_types_and_logs_are_left_alone(tmp_path: Path, code: str) -> None:
    assert replacements(tmp_path, f"def work():\n    {code}\n") == set()


def test_each_change_is_one_edit_of_valid_code(tmp_path: Path) -> None:
    source = "".join(f"x = {code}  # ünd\n" for code in CHANGED).encode()
    (tmp_path / "code.py").write_bytes(source)
    changes = changes_of(tmp_path, "code.py")
    for change in changes:
        changed = change.apply(source)
        ast.parse(changed)
        before, after = source.splitlines(), changed.splitlines()
        assert [number for number, line in enumerate(before, 1) if after[number - 1] != line] == [change.line]
    assert len(changes) == sum(map(len, CHANGED.values()))


def test_a_default_is_seen_by_whoever_runs_the_function(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("def work(a=1):\n    b = a\n    return b\n")
    default, *_ = changes_of(tmp_path, "code.py")
    assert (default.line, default.first, default.last) == (1, 2, 3)


def lines_of(changes: list[Change]) -> set[str]:
    return {change.code for change in changes}


def test_an_edit_elsewhere_keeps_the_drawn_lines(tmp_path: Path) -> None:
    code = [f"x{number} = a + {number}" for number in range(200)]
    (tmp_path / "code.py").write_text("\n".join(code))
    drawn = sample(changes_in(tmp_path, "."), 20, seed=1)
    (tmp_path / "code.py").write_text("\n".join(["# new", "y = b", *code]))
    assert [change.key for change in sample(changes_in(tmp_path, "."), 20, seed=1)] == [
        change.key for change in drawn
    ]
    assert len(lines_of(drawn)) == len(by_line(drawn)) == 20
    assert lines_of(sample(changes_in(tmp_path, "."), 20, seed=2)) != lines_of(drawn)


def test_of_lines_that_read_alike_one_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = not a\n" * 20 + "y = not b\n")
    assert lines_of(sample(changes_in(tmp_path, "."), 20, seed=1)) == {"x = not a", "y = not b"}
    assert len(sample(changes_in(tmp_path, "."), 20, seed=1)) == 2


def test_the_answers_of_this_project_fit_its_code_and_one_whose_line_has_changed_does_not() -> None:
    answers = yaml.safe_load(ANSWERS.read_text())
    gone = "shared/watermark/prf.py | x = a > b | a > b -> a >= b"
    assert stale(answers) == set()
    assert stale({**answers, gone: "They are never equal."}) == {gone}
