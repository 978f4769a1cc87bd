"""Keys, tokens and a backup go from the release before to this one and back (docs/operations/upgrade.md).

No version has been released yet: in its place stands a commit that CHANGELOG.md names.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
BEFORE = "8908aa3"

Type = Callable[..., str]
pytestmark = pytest.mark.timeout(900)  # some twenty commands, each of which imports what it needs


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
    """Runs `ttmark` of a tree in one folder with its store, and gives back what it prints."""
    for name in ("audit", ".ttmark"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / ".ttmark/kek").write_text("ab" * 32)
    (tmp_path / ".ttmark/kek").chmod(0o600)

    def run(tree: Path, *words: str) -> str:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TTMARK_")}
        environment = {**kept, "PYTHONPATH": str(tree), "TTMARK_AUDIT_FOLDER": "audit"}
        code = "import ttmark, sys; assert ttmark.__file__.startswith(sys.argv.pop(1)), ttmark.__file__\n"
        code += "from ttmark.services.cli.main import app; app()"
        command = [sys.executable, "-c", code, str(tree), *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{words}: {done.stderr}{done.stdout}"
        return done.stdout

    return run


def test_what_the_release_before_kept_is_read_and_changed_and_read_there_again(
    old: Path, typed: Type
) -> None:
    tokenizer = str(ROOT / "gen_service/demo_model/model")
    typed(old, "keys", "create", "main", "--tenant", "acme", "--tokenizer", tokenizer)
    typed(old, "tokens", "create", "--tenant", "acme", "--label", "shop", "--scope", "detect")

    assert "1 key with 1 version and 1 token open" in typed(ROOT, "keys", "verify")
    typed(ROOT, "keys", "rotate", "main")
    typed(ROOT, "keys", "promote", "main", "2")

    assert "1 key with 2 versions and 1 token open" in typed(old, "keys", "verify")
    assert typed(old, "keys", "list").count("main") == 2
    typed(old, "audit", "verify", "store")


def test_a_backup_of_the_release_before_restores_and_one_of_this_release_restores_there(
    old: Path, typed: Type, tmp_path: Path
) -> None:
    tokenizer = str(ROOT / "gen_service/demo_model/model")
    for maker, reader in ((old, ROOT), (ROOT, old)):
        name = f"key-{maker.name}".lower()
        typed(maker, "keys", "create", name, "--tenant", "acme", "--tokenizer", tokenizer)
        typed(maker, "keys", "backup", f"{name}.backup")
        for path in (tmp_path / ".ttmark").iterdir():
            if path.name != "kek" and path.is_file():
                path.unlink()  # the store, and what was seen of it
        typed(reader, "keys", "restore", f"{name}.backup")
        assert name in typed(reader, "keys", "list")
