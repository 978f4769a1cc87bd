"""Features are found by their folders, in the order of what they need."""

import sys
from pathlib import Path

import pytest

from ttmark.shared.features import module_of, modules_of


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of features; `module_of` looks there alone."""
    for name, text in {"alone": "", "first": 'NEEDS = ("second",)', "second": "", "third": ""}.items():
        folder = tmp_path / "found_here" / name
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(text)
        if name != "third":
            (folder / "service.py").touch()
    (tmp_path / "found_here/__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("ttmark.shared.features.FOLDERS", ("not_found_here", "found_here"))
    yield tmp_path / "found_here"
    for name in [name for name in sys.modules if name.startswith("found_here")]:
        del sys.modules[name]


def test_who_is_needed_comes_first(places: Path) -> None:
    names = [module.__name__ for module in modules_of("service", "found_here")]
    assert names == ["found_here.alone.service", "found_here.second.service", "found_here.first.service"]


def test_what_python_leaves_of_a_deleted_folder_is_no_feature(places: Path) -> None:
    (places / "gone/__pycache__").mkdir(parents=True)
    (places / "third/service/__pycache__").mkdir(parents=True)
    assert len(modules_of("service", "found_here")) == 3
    assert [module_of(name, "service") for name in ("gone", "third", "never")] == [None] * 3
    assert module_of("alone", "service") is not None
