"""What a converted model folder holds, so that a damaged one is noticed."""

import hashlib
from pathlib import Path
from typing import Any

import orjson

from ttmark.gen_service.smollm2 import CONVERSION, FILE, SAMPLING, WHEEL_SHA256
from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole

MANIFEST = "MANIFEST"


def write_manifest(folder: Path) -> None:
    """Describes every file of a folder that is finished."""
    document = {
        "conversion": CONVERSION,
        "wheel_sha256": WHEEL_SHA256,
        "sampling": SAMPLING,
        "files": {path.name: _describe(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST},
    }
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
    write_whole(folder / MANIFEST, text, mode=AS_UMASK_SAYS)


def is_whole(folder: Path, *, read_all: bool = False, whatever_sampling: bool = False) -> bool:
    """Whether every file is as it was written.

    Args:
        whatever_sampling: accept a folder with an earlier release's sampling too, in whatever state its
            `generation_config.json` is: `get_smollm2` writes it anew.
        read_all: hash every file. Otherwise only those whose time of change is another, because the folder
            was copied, say: that takes no time at a start, and misses what a failing disk changes.
    """
    try:
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
        if manifest["conversion"] != CONVERSION or manifest["wheel_sha256"] != WHEEL_SHA256:
            return False
        files = dict(manifest["files"])
        if manifest.get("sampling") != SAMPLING:
            if not whatever_sampling:
                return False
            files.pop(FILE, None)
        return all(_is_as_written(folder / name, file, read_all) for name, file in files.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def sha256(path: Path) -> str:
    """Of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _describe(path: Path) -> dict[str, Any]:
    status = path.stat()
    return {"bytes": status.st_size, "changed_ns": status.st_mtime_ns, "sha256": sha256(path)}


def _is_as_written(path: Path, file: dict[str, Any], read_all: bool) -> bool:
    status = path.stat()
    if status.st_size != file["bytes"]:
        return False
    untouched = status.st_mtime_ns == file["changed_ns"] and not read_all
    return untouched or bool(sha256(path) == file["sha256"])
