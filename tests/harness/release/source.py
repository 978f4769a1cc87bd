"""The committed tree, as a release is built from it, and what its notes say."""

import re
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


class NoRelease(Exception):
    """A release cannot be made; the message says why and what to do."""


@dataclass(frozen=True)
class Source:
    """A tree without version control, and the commit that it was exported from; files carry its time."""

    folder: Path
    commit: str
    time: str
    version: str

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()


def export(repository: Path, folder: Path, url: str | None) -> Source:
    """Writes the commit that is checked out; without a `url` links of the description become words."""
    changed = _git(repository, "status", "--porcelain").decode().splitlines()
    if changed:
        raise NoRelease(
            f"{len(changed)} files are not committed, {changed[0][3:]} for one: commit or stash them"
        )
    commit = _git(repository, "rev-parse", "HEAD").decode().strip()
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "-C", folder], input=_git(repository, "archive", "HEAD"), check=True)
    project = folder / "pyproject.toml"
    version: str = tomllib.loads(project.read_text())["project"]["version"]
    readme = folder / "README.md"
    readme.write_text(description(readme.read_text(), url and f"{url}/blob/v{version}"))
    if url:
        project.write_text(with_urls(project.read_text(), url))
    return Source(folder, commit, _git(repository, "log", "-1", "--format=%ct").decode().strip(), version)


def description(readme: str, base: str | None) -> str:
    """The README as a package index shows it: links lead to `base`, or become words; pictures too."""

    def instead(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        if base is None:
            return f"*{words}*" if picture else words
        raw = "?raw=true" if picture else ""
        return f"{picture}[{words}]({base}/{target}{raw})"

    return _LINK.sub(instead, readme)


def with_urls(project: str, url: str) -> str:
    """`pyproject.toml` with the addresses that an index shows beside the description."""
    table = f'[project.urls]\nRepository = "{url}"\nChangelog = "{url}/blob/HEAD/CHANGELOG.md"\n\n'
    return project.replace("[project.scripts]", f"{table}[project.scripts]", 1)


def _git(repository: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=repository, check=True, capture_output=True).stdout


_SECTION = re.compile(r"^## \[([^\]]+)\].*\n", re.M)


def release_notes(changelog: str, version: str) -> tuple[str, bool]:
    """The version's section of the change log, and whether there is one; else that of what is unreleased."""
    pieces = _SECTION.split(changelog)
    sections = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    named = version in sections
    body = sections.get(version, sections.get("Unreleased"))
    if body is None:
        raise ValueError(f"CHANGELOG.md has no section [{version}], and none [Unreleased]")
    return f"# TTMark {version}\n\n{body.strip()}\n", named
