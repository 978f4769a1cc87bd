"""What a release's notes say."""

import re

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
