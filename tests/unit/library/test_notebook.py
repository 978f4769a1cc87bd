"""docs/tutorials/library.ipynb, its cells executed in their order, last values shown, as a notebook does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).resolve().parents[3] / "docs/tutorials/library.ipynb"
KERNEL = """
import ast, json, sys

names = {}
for number, source in enumerate(json.load(sys.stdin)):
    *before, last = ast.parse(source).body
    shown = isinstance(last, ast.Expr)
    exec(compile(ast.Module([*before, *([] if shown else [last])], []), f"cell {number}", "exec"), names)
    if shown:
        value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), names)
        print(getattr(value, "_repr_html_", value.__repr__)())
"""

FIXED_KEYS = """
import itertools, os

numbers = itertools.count(1)
os.urandom = lambda size: next(numbers).to_bytes(size, "big")
"""


def cells() -> list[str]:
    notebook = json.loads(NOTEBOOK.read_text())
    assert notebook["nbformat"] == 4
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def executed(sources: list[str], folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", KERNEL],
        input=json.dumps(sources),
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_notebook_finds_what_it_wrote_and_nothing_under_another_key(tmp_path: Path) -> None:
    short = [source.replace('"smollm2"', '"demo"').replace("(40, 80)", "(20, 40)") for source in cells()]
    said = executed([FIXED_KEYS, *(source.replace("=200", "=100, seed=2") for source in short)], tmp_path)
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
