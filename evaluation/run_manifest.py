"""What a run is about, and what it was made with: versions and machine."""

import hashlib
import os
import platform
import shlex
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson

from ttmark.shared.cpu import processor_name
from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole

PACKAGES = ("ttmark", "torch", "transformers", "tokenizers", "numpy", "scipy")


class OtherRun(ValueError):
    """A folder holds what another model, key, seed, size or set of texts gave."""


def check_identity(folder: Path, identity: Mapping[str, Any], **made_with: Any) -> None:
    """Notes in a new folder what the run is about, and holds an old one against it.

    Args:
        made_with: noted beside it, and may change.

    Raises:
        OtherRun: the folder is about something else.
    """
    path = folder / "manifest.json"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if path.exists():
        before, now = orjson.loads(path.read_bytes()), orjson.loads(orjson.dumps(identity))
        if other := [name for name in now if before.get(name) != now[name]]:
            raise OtherRun(f"{folder} holds a run with another {', '.join(other)}; choose another --out")
    written = orjson.dumps({**identity, **made_with}, option=orjson.OPT_INDENT_2)
    write_whole(path, written, mode=AS_UMASK_SAYS)


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "processor": processor_name(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Python's, and the installed ones of the packages that figures depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def in_words(machine: Mapping[str, Any]) -> str:
    """A machine, for a line below figures."""
    return f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB"


def folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    paths = [path for path in sorted(folder.glob("*")) if path.suffix in {".safetensors", ".json"}]
    for path in paths:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest() if paths else ""


def command_line(without: str | None = None) -> str:
    """The command as it was typed, maybe without an option and its value."""
    words = [Path(sys.argv[0]).name, *sys.argv[1:]]
    if without in words:
        place = words.index(without)
        del words[place : place + 2]
    return shlex.join(word for word in words if not (without and word.startswith(f"{without}=")))
