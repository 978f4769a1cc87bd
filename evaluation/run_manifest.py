"""What a run was made with: model, prompts, seed, versions and machine."""

import hashlib
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import orjson
from pydantic import TypeAdapter

from ttmark.evaluation.json_files import write_kept
from ttmark.shared.processor import processor_name

FILE = "manifest.json"
PACKAGES = ("ttmark", "torch", "transformers", "tokenizers", "numpy", "scipy")
IDENTITY = ("model_sha256", "prompts_sha256", "prompt_tokens", "seed")


class ManifestMismatch(Exception):
    """A folder holds results of another model, prompt file or seed."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that the figures of a run depend on.

    Attributes:
        model: what the user called it: `demo`, name of the folder, or hub id.
        model_sha256: of the weights, configuration and tokenizer; empty for a hub id.
    """

    model: str
    model_sha256: str
    prompts_sha256: str
    prompt_tokens: int
    seed: int
    engine: dict[str, Any]
    versions: dict[str, str]
    machine: dict[str, Any]

    @classmethod
    def load(cls, folder: Path) -> "Manifest":
        """The manifest of a folder."""
        return TypeAdapter(cls).validate_json((folder / FILE).read_bytes())

    def save(self, folder: Path) -> None:
        """Writes the manifest, or checks the one that is there.

        Raises:
            ManifestMismatch: the folder belongs to another run.
        """
        path = folder / FILE
        if path.is_file():
            stored = orjson.loads(path.read_bytes())
            for name in IDENTITY if self.model_sha256 else ("model", *IDENTITY):
                if stored[name] != getattr(self, name):
                    raise ManifestMismatch(
                        f"{folder} holds results with {name} {stored[name]!r}, not {getattr(self, name)!r};"
                        " choose another folder"
                    )
        write_kept(path, self)


def describe(
    name: str, model: str, prompts: Path, prompt_tokens: int, seed: int, engine: dict[str, Any]
) -> Manifest:
    """The manifest of a run on this machine; `name` is what the user called the folder or hub id `model`."""
    return Manifest(
        model=Path(name).name if Path(name).is_dir() else name,
        model_sha256=folder_hash(Path(model)),
        prompts_sha256=hashlib.sha256(prompts.read_bytes()).hexdigest(),
        prompt_tokens=prompt_tokens,
        seed=seed,
        engine=engine,
        versions=versions(),
        machine=machine(),
    )


def machine() -> dict[str, Any]:
    """The processor and memory that figures about time depend on."""
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
    """SHA-256 over a model folder's weights, configuration and tokenizer."""
    digest = hashlib.sha256()
    paths = [path for path in sorted(folder.glob("*")) if path.suffix in {".safetensors", ".json"}]
    for path in paths:
        digest.update(path.name.encode())
        digest.update(path.read_bytes())
    return digest.hexdigest() if paths else ""
