"""Features: no module and no test outside imports one, but of features that say that they need it."""

import ast
import re

import pytest

from tests.harness.features import feature_of, features, importers, needs_of
from tests.harness.imports import ROOT


@pytest.mark.parametrize("feature", features())
def test_nobody_imports_a_feature_but_those_that_say_so(feature: str) -> None:
    assert importers()[feature] == []


def test_the_tests_of_a_feature_are_imported_by_those_of_features_that_need_it_alone() -> None:
    tests = ROOT / "tests"
    assert {folder.name for folder in (tests / "features").iterdir()} - {*features(), "__pycache__"} == set()
    inside = {path: path.relative_to(tests / "features").parts[0] for path in (tests / "features").rglob("*")}
    offences = [
        f"{path.relative_to(ROOT)} imports tests of {feature}"
        for path in tests.rglob("*.py")
        for feature in re.findall(r"^(?:from|import) tests\.features\.(\w+)", path.read_text(), re.MULTILINE)
        if feature not in {inside.get(path), *needs_of(inside.get(path, ""))}
    ]
    assert offences == []


def test_tests_of_the_core_import_no_feature() -> None:
    both = []
    for path in (path for kind in ("unit", "contract") for path in (ROOT / "tests" / kind).rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ttmark."):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                places = [name.removeprefix("ttmark.").replace(".", "/") for name in names if name]
                files = [place + end for place in places for end in (".py", "/__init__.py")]
                of = {feature_of(file) for file in files if (ROOT / file).exists()} - {None}
                both += [f"{path.relative_to(ROOT)} imports {one}" for one in of]
    assert both == []
