"""What `make release` makes of a repository, with the tools that an ordinary environment has."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.release import files
from tests.harness.release.__main__ import command_line, main
from tests.harness.release.files import checksums, sign
from tests.harness.release.source import NoRelease, description, export, release_notes, with_urls

CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.2.0] - 2026-01-01\n\n- old\n"
PROJECT = '[project]\nname = "x"\nversion = "0.2.0"\n\n[project.scripts]\nx = "x:y"\n'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "README.md").write_text(
        "![A picture](docs/a.svg) [a page](docs/a.md#b) [far](https://a.example)"
    )
    (folder / "CHANGELOG.md").write_text(CHANGELOG)
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "a"]):
        subprocess.run([*git, *words], cwd=folder, check=True)
    return folder


def test_a_release_is_of_the_commit_and_its_description_has_no_broken_links(repository, tmp_path):
    source = export(repository, tmp_path / "out", None)
    assert source.version == "0.2.0"
    assert len(source.commit) == 40
    assert source.text("README.md") == "*A picture* a page [far](https://a.example)"
    assert "urls" not in source.text("pyproject.toml")


def test_links_of_the_description_lead_to_the_repository_that_is_named() -> None:
    base = "https://git.example/t/blob/v1"
    assert (
        description("[a](docs/a.md#b) ![c](d.svg)", base)
        == f"[a]({base}/docs/a.md#b) ![c]({base}/d.svg?raw=true)"
    )
    assert 'Repository = "https://git.example/t"\n' in with_urls(PROJECT, "https://git.example/t")


def test_what_is_not_committed_is_not_released(repository: Path, tmp_path: Path) -> None:
    (repository / "README.md").write_text("other")
    with pytest.raises(NoRelease, match=r"README\.md"):
        export(repository, tmp_path / "out", None)


def test_the_notes_are_the_versions_section_or_what_is_unreleased() -> None:
    assert release_notes(CHANGELOG, "0.2.0") == ("# TTMark 0.2.0\n\n- old\n", True)
    assert release_notes(CHANGELOG, "0.3.0") == ("# TTMark 0.3.0\n\n- new\n", False)


def test_a_published_release_needs_a_section_of_its_own(repository, tmp_path, capsys):
    (repository / "pyproject.toml").write_text(PROJECT.replace("0.2.0", "0.3.0"))
    commit = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "commit", "-qam", "b"]
    subprocess.run(commit, cwd=repository, check=True)
    assert main(["--source", str(repository), "--out", str(tmp_path / "dist"), "--need-section"]) == 1
    assert "no section [0.3.0]" in capsys.readouterr().err


def test_the_sums_name_every_file_and_sha256sum_reads_them(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"a")
    (tmp_path / "b.json").write_bytes(b"b")
    checksums(tmp_path)
    sums = checksums(tmp_path)  # again, with the sums of before beside the files
    assert [line.split()[1] for line in sums.read_text().splitlines()] == ["a.whl", "b.json"]
    subprocess.run(["sha256sum", "--check", "--strict", "--quiet", sums.name], cwd=tmp_path, check=True)


@pytest.mark.skipif(
    shutil.which("minisign") is None, reason="minisign is missing; Debian's package has its name"
)
def test_the_sums_are_signed_with_the_key_that_is_named(tmp_path: Path) -> None:
    key, out = tmp_path / "release.key", tmp_path / "dist"
    out.mkdir()
    subprocess.run(["minisign", "-G", "-W", "-s", key, "-p", key.with_suffix(".pub")], check=True)
    (out / "a.whl").write_bytes(b"a")
    sums = checksums(out)
    sign(sums, key, "TTMark 0.2.0")
    verify = ["minisign", "-V", "-q", "-p", out / "minisign.pub", "-m", sums]
    subprocess.run(verify, check=True)
    sums.write_text(sums.read_text() + "0  b.whl\n")
    assert subprocess.run(verify, check=False).returncode != 0


def test_a_key_that_is_not_there_is_named_with_the_command_that_makes_one(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/minisign")
    with pytest.raises(NoRelease, match=r"minisign -G -s \S*none\.key"):
        sign(tmp_path / files.SUMS, tmp_path / "none.key", "")


def test_an_engine_that_does_not_answer_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    for name, code in (("docker", 1), ("podman", 1)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    assert files.container_engine() is None
    (tmp_path / "podman").write_text("#!/bin/sh\nexit 0\n")
    assert files.container_engine() == "podman"


def test_the_workflow_that_would_publish_is_one(root: Path) -> None:
    command = ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"]
    command[0] = str(Path(sys.executable).with_name(command[0]))
    workflow = root / ".github/workflows/release.yml"
    run = subprocess.run([*command, workflow], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_the_workflow_calls_what_there_is(root: Path) -> None:
    text = (root / ".github/workflows/release.yml").read_text()
    options = text.split('RELEASE_ARGS="')[1].split('"')[0].split()
    assert command_line().parse_args(options).need_section
    assert "\nrelease:" in (root / "Makefile").read_text()
