"""docs/tutorials/library.ipynb, its cells executed in their order, last values shown, as a notebook does."""

import ast
import contextlib
import io
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.harness.imports import ROOT

pytestmark = pytest.mark.long

NOTEBOOK = ROOT / "docs/tutorials/library.ipynb"


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def executed(sources: list[str], folder: Path) -> str:
    """What is shown of the cells, in a folder of their own; the keys are the same in every run."""
    names: dict[str, Any] = {}
    numbers = itertools.count(1)
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(io.StringIO()) as said:
        patch.chdir(folder)
        patch.setattr(os, "urandom", lambda size: next(numbers).to_bytes(size, "big"))
        for number, source in enumerate(sources):
            *before, last = ast.parse(source).body
            shown = isinstance(last, ast.Expr)
            whole = ast.Module(before if shown else [*before, last], [])
            exec(compile(whole, f"cell {number}", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
                print(getattr(value, "_repr_html_", value.__repr__)())
    names["model"].close()
    return said.getvalue()


def test_the_notebook_finds_what_it_wrote_and_nothing_under_another_key(tmp_path: Path) -> None:
    short = [source.replace('"smollm2"', '"demo"').replace("(40, 80)", "(10, 20)") for source in cells()]
    said = executed([source.replace("=200", "=100, seed=2") for source in short], tmp_path)
    assert said.count("<p><b>Watermarked: ") == 2
    assert said.count("<p><b>Not detected: ") == 1
    assert "<mark " in said
    assert (tmp_path / "key.json").is_file()


@pytest.mark.slow
def test_the_notebook_runs_as_it_stands(tmp_path: Path, smollm2_folder: Path) -> None:
    (tmp_path / ".ttmark/models").mkdir(parents=True)
    (tmp_path / ".ttmark/models/smollm2").symlink_to(smollm2_folder)
    said = executed(cells(), tmp_path)
    assert said.count("<p><b>") == 3
    assert (tmp_path / "key.json").is_file()
