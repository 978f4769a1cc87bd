"""Keys, tokens and a backup go from the release before to this one and back (docs/operations/upgrade.md).

No version has been released yet: in its place stands a commit that CHANGELOG.md names.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.imports import ROOT

BEFORE = "8908aa3"

Type = Callable[..., list[str]]
pytestmark = pytest.mark.timeout(900)  # processes that each import what they need
COMMANDS = """
import sys
import ttmark
from ttmark.services.cli.main import app

assert ttmark.__file__.startswith(sys.argv[1]), ttmark.__file__
for command in sys.argv[2:]:
    try:
        app(command.split())
    except SystemExit as end:
        if end.code:
            raise
    print("\\f", end="")
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree of the release before."""
    packed = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this tree has no history with commit {BEFORE}")
    folder = tmp_path_factory.mktemp("old")
    subprocess.run(["tar", "-x", "-C", folder], input=packed.stdout, check=True)
    return folder


@pytest.fixture
def typed(tmp_path: Path) -> Type:
    """Runs commands of a tree's `ttmark` in one folder, several in one process; what each prints."""
    for name in ("audit", ".ttmark"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / ".ttmark/kek").write_text("ab" * 32)
    (tmp_path / ".ttmark/kek").chmod(0o600)

    def run(tree: Path, *commands: str) -> list[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
        environment = {**kept, "PYTHONPATH": str(tree), "TTMARK_AUDIT_FOLDER": "audit"}
        done = subprocess.run(
            [sys.executable, "-c", COMMANDS, str(tree), *commands],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{commands}: {done.stderr}{done.stdout}"
        return done.stdout.split("\f")[:-1]

    return run


def test_what_the_release_before_kept_is_read_and_changed_and_read_there_again(
    old: Path, typed: Type
) -> None:
    tokenizer = ROOT / "gen_service/demo_model/model"
    typed(
        old,
        f"keys create main --tenant acme --tokenizer {tokenizer}",
        "tokens create --tenant acme --label shop --scope detect",
    )
    verified, *_ = typed(ROOT, "keys verify", "keys rotate main", "keys promote main 2")
    assert "1 key with 1 version and 1 token open" in verified

    verified, listed, _ = typed(old, "keys verify", "keys list", "audit verify store")
    assert "1 key with 2 versions and 1 token open" in verified
    assert listed.count("main") == 2


@pytest.mark.long
def test_a_backup_of_the_release_before_restores_and_one_of_this_release_restores_there(
    old: Path, typed: Type, tmp_path: Path
) -> None:
    tokenizer = ROOT / "gen_service/demo_model/model"
    for maker, reader in ((old, ROOT), (ROOT, old)):
        name = f"key-{maker.name}".lower()
        typed(
            maker, f"keys create {name} --tenant acme --tokenizer {tokenizer}", f"keys backup {name}.backup"
        )
        for path in (tmp_path / ".ttmark").iterdir():
            if path.name != "kek" and path.is_file():
                path.unlink()  # the store, and what was seen of it
        _, listed = typed(reader, f"keys restore {name}.backup", "keys list")
        assert name in listed
