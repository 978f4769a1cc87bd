"""The texts of the files that `ttmark detect` is given, read as the detection service reads them."""

import asyncio
from pathlib import Path

from ttmark.detect_service.extraction import ExtractionLimits, ExtractionWorkers, UnreadableFile
from ttmark.detect_service.extraction.formats import FORMAT_OF_ENDING
from ttmark.services.cli.input_text import read_bytes, shown
from ttmark.services.extras import require
from ttmark.services.runtime import StartupError
from ttmark.services.settings_extraction import ExtractionSettings

_BYTE_ORDER_MARK = "\ufeff"


def read_texts(names: list[str]) -> list[str]:
    """The text of each file, or of standard input for `-`; an unknown ending is plain text.

    Raises:
        StartupError: one cannot be read, gives no text, or needs a library that is not installed.
    """
    return asyncio.run(_read_all(names, ExtractionSettings().extraction_limits()))


async def _read_all(names: list[str], limits: ExtractionLimits) -> list[str]:
    texts: list[str] = []
    async with ExtractionWorkers(limits) as workers:
        for start in range(0, len(names), limits.workers):
            texts += await asyncio.gather(
                *(_read(name, workers) for name in names[start : start + limits.workers])
            )
    return texts


async def _read(name: str, workers: ExtractionWorkers) -> str:
    content = await asyncio.to_thread(read_bytes, name)
    filename = name if Path(name).suffix.lower() in FORMAT_OF_ENDING else f"{name}.txt"
    if FORMAT_OF_ENDING[Path(filename).suffix.lower()] == "text":
        try:
            return content.decode("utf-8").removeprefix(_BYTE_ORDER_MARK)  # needs no library
        except UnicodeDecodeError:
            pass
    require("detect")
    try:
        return (await workers.extract(filename, content)).text
    except UnreadableFile as error:
        raise StartupError(f"{shown(name)}: {error}") from error
