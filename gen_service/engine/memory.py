"""How much memory this process may still take: the machine's, or what a container's limit leaves."""

from pathlib import Path

import psutil

_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def available_memory(cgroups: Path = _CGROUPS, membership: Path = _MEMBERSHIP) -> int:
    """Bytes that are free on the machine and within every cgroup limit that holds for this process.

    Args:
        cgroups: where cgroup v2, or v1 with its controllers below, is mounted.
        membership: names the process's groups, in the format of /proc/self/cgroup.
    """
    left = [_left(group) for group in _groups(cgroups, membership)]
    return min([psutil.virtual_memory().available, *(bytes_ for bytes_ in left if bytes_ is not None)])


def _groups(cgroups: Path, membership: Path) -> list[Path]:
    """Folders of the process's memory cgroup and of all above it, which limit it too."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        lines = []
    folders = [cgroups, cgroups / "memory"]
    for line in lines:
        _, controllers, path = line.split(":", 2)
        root = cgroups if controllers == "" else cgroups / "memory"
        if controllers == "" or "memory" in controllers.split(","):
            folder = root / path.lstrip("/")
            folders += [each for each in (folder, *folder.parents) if each.is_relative_to(root)]
    return folders


def _left(group: Path) -> int | None:
    """What a group's limit leaves; None: it has none. Files that the kernel keeps in memory can go."""
    for limit, usage in (
        ("memory.max", "memory.current"),
        ("memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        most, used = _number(group / limit), _number(group / usage)
        if most is not None and used is not None:
            return max(0, most - used + _reclaimable(group))
    return None


def _reclaimable(group: Path) -> int:
    try:
        entries = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except (OSError, ValueError):
        return 0
    return int(entries.get("total_inactive_file", entries.get("inactive_file", 0)))


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):  # no such group, or the limit is "max"
        return None
