"""The red list names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def rows() -> list[tuple[str, str]]:
    """Of each entry: the attack, and what is said of it, its tests last."""
    text = (ROOT / "docs/red-list.md").read_text()
    return re.findall(r"^- \*\*(.+?)\.\*\* (.+)$", text, re.MULTILINE)


@pytest.mark.parametrize(("attack", "tests"), rows(), ids=[attack for attack, _ in rows()])
def test_an_attack_names_tests_that_exist(attack: str, tests: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`: ((?:`test_\w+`(?:, )?)+)", tests)
    assert named, f"{attack}: no test"
    for path, names in named:
        source = (ROOT / path).read_text()
        for name in re.findall(r"`(\w+)`", names):
            assert re.search(rf"^(async )?def {name}\(", source, re.MULTILINE), f"{path} has no {name}"


def test_all_rows_are_seen() -> None:
    assert len(rows()) > 20
