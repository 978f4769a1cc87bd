"""Files are read by a few processes that may die; each is killed and replaced when a file takes too much."""

import asyncio
from collections import Counter
from collections.abc import Hashable
from typing import Self

import structlog

from ttmark.detect_service.features.files.text.extraction import (
    ALONE,
    MANIFEST,
    Extraction,
    ExtractionLimits,
    LimitExceeded,
    format_of,
)
from ttmark.detect_service.features.files.workers.confinement import lacking
from ttmark.detect_service.features.files.workers.worker_process import (
    WorkerProcess,
    manifest_request,
)
from ttmark.shared.schemas.detection.extraction import PICTURES

_log = structlog.get_logger("ttmark.extraction")
# Memory that a library does not give back is given back by the end of its process.
_FILES_OF_A_PROCESS = 200
_WITH_PICTURES = (".pdf", *(f".{ending}" for ending in PICTURES))


class ExtractionBusy(Exception):
    """As many files as may wait are waiting; in `retry_after` seconds another try makes sense."""

    reason = "busy"

    def __init__(self, retry_after: float) -> None:
        super().__init__("too many files are waiting to be read")
        self.retry_after = retry_after


class ExtractionWorkers:
    """A pool of processes within limits; they are started when there is work, or by `warm`.

    It belongs to one event loop and is closed by `close` or as an async context manager.
    """

    def __init__(self, limits: ExtractionLimits | None = None) -> None:
        self.limits = limits or ExtractionLimits()
        self._slots = asyncio.Semaphore(self.limits.workers)
        self._idle: list[WorkerProcess] = []
        self._held: Counter[Hashable] = Counter()
        self._endings: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def warm(self) -> None:
        """Starts a process, so that the first file need not wait, and logs what confinement lacks."""
        if missing := lacking():
            _log.warning("files_read_without", missing=missing, limits="on time and memory hold")
        if not self._idle:
            self._idle.append(await WorkerProcess.start(self.limits))

    async def close(self) -> None:
        """Ends the idle processes; files that are being read have to be finished or cancelled before."""
        while self._idle:
            self._end(self._idle.pop())
        await asyncio.gather(*self._endings)

    async def extract(self, filename: str, content: bytes, owner: Hashable = None) -> Extraction:
        """The text of a file. Cancelled, it kills the process that reads the file.

        Args:
            owner: whose file it is; the files of one owner take at most half of the places.

        Raises:
            UnreadableFile: the file gives no text.
            LimitExceeded: the file takes more than one file may.
            ExtractionBusy: too many files are waiting, all together or of this owner.
        """
        kind = format_of(filename)  # nobody waits to hear that the format is unknown
        try:
            return await self._in_turn(filename, content, owner)
        except LimitExceeded:
            if kind != "eml":
                raise
            return await self._in_turn(ALONE, content, owner)  # the mail without its files

    async def read_manifest(self, manifest: bytes, anchors: str | None, owner: Hashable = None) -> str:
        """What the C2PA library says of a manifest, in JSON; not to be trusted more than the manifest.

        Raises:
            UnreadableFile: reading it ended the process.
            LimitExceeded: it takes more than one file may.
            ExtractionBusy: too much is waiting.
        """
        return (await self._in_turn(MANIFEST, manifest_request(manifest, anchors), owner)).text

    async def _in_turn(self, filename: str, content: bytes, owner: Hashable) -> Extraction:
        self._take_place(owner)
        try:
            async with self._slots:
                return await self._read(filename, content)
        finally:
            self._held[owner] -= 1
            self._held += Counter()  # forgets owners without files

    def _take_place(self, owner: Hashable) -> None:
        places = self.limits.workers + self.limits.queue
        allowed = places if owner is None else max(1, places // 2)
        if self._held.total() >= places or self._held[owner] >= allowed:
            raise ExtractionBusy(self.limits.cpu_seconds)
        self._held[owner] += 1

    async def _read(self, filename: str, content: bytes) -> Extraction:
        worker = await self._worker()
        seconds = self.limits.seconds * (1 + filename.lower().endswith(_WITH_PICTURES))
        try:
            async with asyncio.timeout(seconds):
                return await worker.read(filename, content)
        except TimeoutError:
            worker.kill()
            raise LimitExceeded(
                f"Reading the file takes more than the limit of {seconds:g} seconds.", "time"
            ) from None
        except asyncio.CancelledError:
            worker.kill()
            raise
        finally:
            if worker.usable and worker.files < _FILES_OF_A_PROCESS:
                self._idle.append(worker)
            else:
                self._end(worker)

    async def _worker(self) -> WorkerProcess:
        while self._idle:
            worker = self._idle.pop()
            if worker.usable:
                return worker
            self._end(worker)
        return await WorkerProcess.start(self.limits)

    def _end(self, worker: WorkerProcess) -> None:
        worker.kill()
        ending = asyncio.create_task(worker.gone())
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)
