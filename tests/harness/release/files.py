"""The files of a release, and its images: built, checked, summed, signed."""

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

from tests.harness.release.source import NoRelease, Source

SUMS = "SHA256SUMS"


def build(source: Source, out: Path) -> tuple[Path, Path]:
    """Makes sdist and, from it, the wheel; the same commit and tools give the same wheel."""
    environment = {**os.environ, "SOURCE_DATE_EPOCH": source.time}
    _tool(["build", "--no-isolation", "--outdir", str(out), str(source.folder)], environment)
    wheel, sdist = next(out.glob("*.whl")), next(out.glob("*.tar.gz"))
    _tool(["twine", "check", "--strict", str(wheel), str(sdist)])
    return wheel, sdist


def bill_of_materials(python: Path, source: Source, target: Path) -> None:
    """Writes what is installed beside a Python, with the wheel and all that it needs, as CycloneDX."""
    options = [
        "--pyproject",
        str(source.folder / "pyproject.toml"),
        "--mc-type",
        "application",
        "--output-reproducible",
    ]
    _tool(["cyclonedx_py", "environment", *options, "--output-file", str(target), str(python)])


def checksums(out: Path) -> Path:
    """Writes `SHA256SUMS` of all files of the folder, as `sha256sum --check` reads it."""
    target = out / SUMS
    names = sorted(path.name for path in out.iterdir() if path.is_file() and not path.name.startswith(SUMS))
    lines = [f"{hashlib.sha256((out / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    target.write_text("".join(lines))
    return target


def sign(sums: Path, key: Path, comment: str) -> Path:
    """Signs the sums, and so every file that they name, and checks it; asks for the key's password."""
    minisign = shutil.which("minisign")
    if minisign is None:
        raise NoRelease("minisign is missing: on Debian, apt install minisign")
    if not key.is_file():
        raise NoRelease(f"there is no key {key}; minisign -G -s {key} -p {key.with_suffix('.pub')} makes one")
    signature = sums.with_name(f"{sums.name}.minisig")
    run = subprocess.run([minisign, "-S", "-s", key, "-m", sums, "-x", signature, "-t", comment], check=False)
    if run.returncode:
        raise NoRelease(f"minisign did not sign {sums.name} with {key}")
    public = key.with_suffix(".pub")
    if public.is_file():
        subprocess.run([minisign, "-V", "-q", "-p", public, "-m", sums, "-x", signature], check=True)
        shutil.copy(public, sums.with_name("minisign.pub"))
    return signature


def _tool(arguments: list[str], environment: dict[str, str] | None = None) -> None:
    run = subprocess.run(
        [sys.executable, "-m", *arguments], env=environment, check=False, capture_output=True, text=True
    )
    if run.returncode:
        raise NoRelease(f"{arguments[0]} failed:\n{run.stdout}{run.stderr}".rstrip())


IMAGES = {"ttmark-detect": "detect.Dockerfile", "ttmark-gen": "gen.Dockerfile"}


def container_engine() -> str | None:
    """`docker` or `podman`, whichever answers."""
    for name in ("docker", "podman"):
        if (
            shutil.which(name)
            and subprocess.run([name, "info"], check=False, capture_output=True).returncode == 0
        ):
            return name
    return None


def build_images(engine: str, source: Source, target: Path) -> None:
    """Builds for this machine's processor, and writes name, processor and digest of each, as JSON."""
    built = {}
    for name, dockerfile in IMAGES.items():
        tag = f"{name}:{source.version}"
        command = [engine, "build", "-f", f"deploy/docker/{dockerfile}", "-t", tag, "."]
        if engine == "podman":
            command[2:2] = ["--format", "docker"]  # which keeps the health check
        if subprocess.run(command, cwd=source.folder, check=False).returncode:
            raise NoRelease(f"{engine} could not build {tag}; --without images leaves them out")
        said = subprocess.run(
            [engine, "inspect", "--format", "{{.Id}}", tag], check=True, capture_output=True, text=True
        )
        built[tag] = {"id": said.stdout.strip(), "processor": platform.machine()}
    target.write_text(json.dumps(built, indent=2) + "\n")
