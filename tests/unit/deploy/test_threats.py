"""The red list names tests that exist, and `make test` runs one at least of each attack."""

import ast
import re
from functools import cache

import pytest

from tests.harness.imports import ROOT


def rows() -> list[tuple[str, str]]:
    """Of each entry: the attack, and what is said of it, its tests last."""
    text = (ROOT / "docs/red-list.md").read_text()
    return re.findall(r"^- \*\*(.+?)\.\*\* (.+)$", text, re.MULTILINE)


@cache
def in_make_test(path: str) -> dict[str, bool]:
    """The tests of a file, and whether `make test` runs them: neither they nor the file are marked."""
    tree = ast.parse((ROOT / path).read_text())
    of_file = [ast.unparse(node) for node in tree.body if "pytestmark" in ast.unparse(node).split(" = ")[0]]
    return {
        node.name: not re.search(
            r"(^|[ \[])pytest\.mark\.(long|slow)\b",
            "\n".join([*map(ast.unparse, node.decorator_list), *of_file]),
        )
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


@pytest.mark.parametrize(("attack", "tests"), rows(), ids=[attack for attack, _ in rows()])
def test_an_attack_names_tests_that_exist_and_one_that_make_test_runs(attack: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`: ((?:`test_\w+`(?:, )?)+)", tests)
    assert named, f"{attack}: no test"
    run = []
    for path, names in named:
        for name in re.findall(r"`(\w+)`", names):
            assert name in in_make_test(path), f"{path} has no {name}"
            run.append(in_make_test(path)[name])
    assert any(run), f"{attack}: all tests are marked"


def test_all_rows_are_seen() -> None:
    assert len(rows()) > 20
