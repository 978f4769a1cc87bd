"""What earlier runs found: each part holds while the files that it comes from are the same."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.harness.mutation.tree import digest


class Kept:
    """Records by name, written at once, so that a run that is stopped goes on where it was."""

    def __init__(self, folder: Path, snapshot: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._snapshot = folder, snapshot

    def get(self, name: str) -> Any:
        """A record, or None where there is none or a file that it comes from has changed."""
        kept = self._read(name)
        valid = kept and digest(self._snapshot, kept["files"]) == kept["digest"]
        return kept["record"] if valid else None

    def last(self, name: str) -> Any:
        """The record of the last run, or None where there is none."""
        return self._read(name).get("record")

    def put(self, name: str, record: Any, files: Sequence[str]) -> None:
        """Keeps a record that comes from these files."""
        kept = {
            "name": name,
            "files": sorted(files),
            "digest": digest(self._snapshot, files),
            "record": record,
        }
        self._path(name).write_text(json.dumps(kept))

    def _read(self, name: str) -> dict[str, Any]:
        path = self._path(name)
        return dict(json.loads(path.read_text())) if path.exists() else {}

    def _path(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
