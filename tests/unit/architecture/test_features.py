"""Which modules outside an optional feature import it: the list may only shrink. No test does."""

import re
from pathlib import Path

import pytest
import yaml

from tests.harness.features import ELSEWHERE, features, importers
from tests.harness.imports import ROOT

LIST = yaml.safe_load(Path(__file__).with_name("importers.yml").read_text())


def test_the_modules_of_a_feature_are_there_and_each_stands_under_one() -> None:
    homes = [home for homes in ELSEWHERE.values() for home in homes]
    assert [home for home in homes if not (ROOT / home).exists()] == []
    assert [a for a in homes for b in homes if a != b and a.startswith(b)] == []
    assert sorted(LIST) == features()


@pytest.mark.parametrize("feature", features())
def test_nobody_new_imports_a_feature(feature: str) -> None:
    assert set(importers()[feature]) - set(LIST[feature]) == set()


def test_the_tests_of_a_feature_stand_in_a_folder_that_nobody_outside_imports() -> None:
    tests = ROOT / "tests"
    assert {folder.name for folder in (tests / "features").iterdir()} - {*features(), "__pycache__"} == set()
    inside = {path: path.relative_to(tests / "features").parts[0] for path in (tests / "features").rglob("*")}
    offences = [
        f"{path.relative_to(ROOT)} imports tests of {feature}"
        for path in tests.rglob("*.py")
        for feature in re.findall(r"^(?:from|import) tests\.features\.(\w+)", path.read_text(), re.MULTILINE)
        if inside.get(path) != feature
    ]
    assert offences == []
