"""The red list names tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def rows() -> list[tuple[str, str]]:
    """Of each row: the attack, and the cell that names its tests."""
    text = (ROOT / "docs/red-list.md").read_text()
    cells = [line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(row[0].strip(), row[-1]) for row in cells if row[0].strip() != "attack"]


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
