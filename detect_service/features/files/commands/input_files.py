"""The files that `ttmark detect` is given and their texts, read as the detection service reads them."""

import asyncio
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from ttmark.detect_service.features.files.settings import ExtractionSettings
from ttmark.detect_service.features.files.text.extraction import (
    FORMAT_OF_ENDING,
    OF_SEVERAL,
    ExtractionLimits,
    UnreadableFile,
)
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.services.cli.files import STANDARD_INPUT, bytes_of, shown
from ttmark.services.startup import StartupError, require
from ttmark.shared.schemas.detection.extraction import FILE_KINDS

_ENDINGS = {ending for ending, kind in FORMAT_OF_ENDING.items() if kind not in OF_SEVERAL}
_SEVERAL = {
    "csv": "it holds rows: `ttmark detect --bulk` and `ttmark jobs submit` read them, and the console does",
    "mbox": "it holds several mails: the console reads them, or save each as an eml file",
}
_BYTE_ORDER_MARK = "\ufeff"
LONGEST_ID = 256
"""Of a document: of a longer name the end is sent."""


@dataclass(frozen=True, slots=True)
class NotExamined:
    """A file without an answer, and why in one line."""

    name: str
    reason: str


def named_files(names: Sequence[str]) -> tuple[list[str | NotExamined], int]:
    """The files themselves, of each folder those in it, and how many in folders were passed over.

    Of a folder and the folders in it, in the order of their paths, the files whose ending names a format that
    is read; nothing whose name begins with a point, and no folder behind a link. A folder without such a file
    is a `NotExamined`.
    """
    found: list[str | NotExamined] = []
    skipped = 0
    for name in names:
        if name == STANDARD_INPUT or not Path(name).is_dir():
            found.append(name)
            continue
        files = sorted(_inside(Path(name)))
        readable = [str(path) for path in files if path.suffix.lower() in _ENDINGS]
        skipped += len(files) - len(readable)
        found += readable or [NotExamined(name, f"the folder holds no {FILE_KINDS} file")]
    return found, skipped


def _inside(folder: Path) -> list[Path]:
    files: list[Path] = []
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [path for name in names if not name.startswith(".") and (path := Path(root, name)).is_file()]
    return files


def read_text(name: str) -> str:
    """The text of one file, as `read_texts`; where that says `NotExamined`, it raises StartupError."""
    (text,) = read_texts([name])
    if isinstance(text, NotExamined):
        raise StartupError(f"{text.name}: {text.reason}")
    return text


def read_texts(files: Sequence[str | NotExamined]) -> list[str | NotExamined]:
    """The text of each file, or of standard input for `-`; an unknown ending is plain text.

    A file that cannot be read, gives no text, or needs a library that is not installed is a `NotExamined`.
    """
    return asyncio.run(_read_all(files, ExtractionLimits(workers=ExtractionSettings().extract_workers)))


async def _read_all(files: Sequence[str | NotExamined], limits: ExtractionLimits) -> list[str | NotExamined]:
    texts: list[str | NotExamined] = []
    async with ExtractionWorkers(limits) as workers:
        for start in range(0, len(files), limits.workers):
            some = files[start : start + limits.workers]
            texts += await asyncio.gather(*(_read(file, workers) for file in some))
    return texts


async def _read(file: str | NotExamined, workers: ExtractionWorkers) -> str | NotExamined:
    if isinstance(file, NotExamined):
        return file
    kind = FORMAT_OF_ENDING.get(Path(file).suffix.lower(), "text")
    if kind in OF_SEVERAL:
        return NotExamined(shown(file), _SEVERAL[kind])
    try:
        content = await asyncio.to_thread(bytes_of, file)
        if kind == "text":
            try:
                return content.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)  # needs no library
            except UnicodeDecodeError:
                pass
        require("detect")
        filename = file if Path(file).suffix.lower() in FORMAT_OF_ENDING else f"{file}.txt"
        found = await workers.extract(filename, content)
        if found.recognised:
            typer.echo(f"{shown(file)}: a machine read pictures (OCR), letters may be wrong", err=True)
        if found.unread:
            typer.echo(f"{shown(file)}: {found.unread}", err=True)
        if found.parts:  # of a mail the body comes first
            typer.echo(f"{shown(file)}: files came with it, which the console reads", err=True)
            return found.parts[0].text or NotExamined(shown(file), found.parts[0].problem or "")
        return found.text
    except OSError as error:
        return NotExamined(shown(file), error.strerror or str(error))
    except (StartupError, UnreadableFile) as error:
        return NotExamined(shown(file), str(error))
