"""The site's build: what is wrong with a page fails it, and what `docs/conf.py` adds."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

GOOD = {
    "navigation.yml": "root: index\nentries: [{file: adr/README}, {file: results/table}]\n",
    "index.md": "# Home\n\n## A part\n\n"
    "[A part](#a-part), [a decision](adr/0001-one.md), [a folder](images)\n\n"
    "![A](images/a-light.svg)\n",
    "adr/README.md": "# Decisions\n",
    "adr/0001-one.md": "# 1. One\n\n[Home](../index.md#a-part)\n",
    "results/table.md": "**A table**\n\n| a |\n|---|\n| 1 |\n",
    "images/a-light.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "images/a-dark.svg": "<svg xmlns='http://www.w3.org/2000/svg'><g/></svg>",
}
BAD = {
    "navigation.yml": "root: index\n",
    "index.md": "# Home\n\n"
    "[x](nowhere.md) [x](#no-such-part) [x](adr/0001-one.md#no-such-part) [x](no-folder)\n\n"
    "![x](images/none.svg)\n",
    "lost.md": "# Lost\n",
    "adr/0001-one.md": "# 1. One\n",
}


def build(root: Path, folder: Path, files: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Builds a site of these files as `make check` builds ours."""
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(root / "docs/conf.py", folder)
    (folder / "static").mkdir()
    for name in ("site.css", "site.js"):
        (folder / "static" / name).touch()
    options = ["--quiet", "--fresh-env", "--fail-on-warning", "--keep-going"]
    command = [sys.executable, "-m", "sphinx", *options, str(folder), str(folder / "built")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_faults_of_a_page_fail_the_build_and_each_is_named(root: Path, tmp_path: Path) -> None:
    result = build(root, tmp_path, BAD)
    assert result.returncode != 0
    broken = ("not found: 'no-such-part'", "in doc 'adr/0001-one': 'no-such-part'")
    for fault in ("nowhere.md", *broken, "no-folder", "images/none.svg", "lost.md"):
        assert fault in result.stderr, fault


def test_a_page_reads_the_same_on_the_site_and_in_the_repository(root: Path, tmp_path: Path) -> None:
    result = build(root, tmp_path, GOOD)
    assert result.returncode == 0, result.stderr
    home = (tmp_path / "built/index.html").read_text()
    assert 'href="adr/0001-one.html"' in home
    assert 'href="#a-part"' in home
    assert "a folder" in home
    assert ">a folder</a>" not in home
    assert "a-light.svg" in home
    assert "a-dark.svg" in home
    assert ">1. One<" in (tmp_path / "built/adr/README.html").read_text()
    assert "<h1>table" in (tmp_path / "built/results/table.html").read_text()
