"""The locked versions install on the oldest Python that we name, and on Debian 12's."""

from importlib.metadata import distributions

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from tests.harness.imports import ROOT

CONSTRAINTS = ROOT / "constraints.txt"


@pytest.mark.parametrize("python", ["3.11.0", "3.11.2"])
def test_no_locked_version_asks_for_a_newer_python(python: str) -> None:
    lines = CONSTRAINTS.read_text().splitlines()
    locked = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    wants = {
        f"{each.name} {each.version}": SpecifierSet(each.metadata["Requires-Python"] or "")
        for each in distributions()
        if canonicalize_name(each.name) in locked
    }
    assert len(wants) > 100
    assert [name for name, allowed in wants.items() if not allowed.contains(python)] == []
