"""Copies of the working tree, in which a file can be another one; the tree itself is never touched."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def take_snapshot(folder: Path) -> list[str]:
    """Copies tracked files, and new ones that git does not ignore, as they are now; their names."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"]
    listed = subprocess.check_output(command, cwd=ROOT, text=True).split("\0")
    names = sorted(name for name in listed if name and os.path.lexists(ROOT / name))
    for name in names:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return names


def digest(folder: Path, names: Iterable[str]) -> str:
    """A name for the contents of these files; a missing one is an empty one."""
    state = hashlib.sha256()
    for name in sorted(names):
        path = folder / name
        content = path.read_bytes() if path.is_file() else b""
        state.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
    return state.hexdigest()[:16]


class Tree:
    """A copy of a snapshot, with a folder for temporary files beside it."""

    def __init__(self, snapshot: Path, folder: Path) -> None:
        self.root = folder.resolve() / "tree"
        self.temporary = folder.resolve() / "tmp"
        self._version = 0
        shutil.copytree(snapshot, self.root, symlinks=True)

    @contextmanager
    def changed(self, path: str, content: bytes) -> Iterator[None]:
        """The copy with another content of one file."""
        target = self.root / path
        original, times = target.read_bytes(), target.stat()
        self._version += 1
        target.write_bytes(content)
        # A time of its own: compiled files are matched by the second and the size of their source.
        os.utime(target, (times.st_atime, times.st_mtime + self._version))
        try:
            yield
        finally:
            target.write_bytes(original)
            os.utime(target, ns=(times.st_atime_ns, times.st_mtime_ns))
