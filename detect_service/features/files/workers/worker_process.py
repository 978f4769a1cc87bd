"""A worker process as the service sees it, and what they say to each other.

That is a line of JSON (`filename` and `size`; `AnswerHead`), then as many bytes as it says: of several texts
slices, each after a line with its size, so that the event loop never reads many at a time. Nothing is
unpickled: a worker that a file has taken over can answer with a wrong text at worst.
"""

import asyncio
import base64
import json
import os
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Self, cast

from pydantic import BaseModel, ConfigDict, NonNegativeInt, TypeAdapter

from ttmark.detect_service.features.files.text.extraction import (
    MOST_PARTS,
    Extraction,
    ExtractionLimits,
    LimitExceeded,
    Reason,
    UnreadableFile,
)
from ttmark.shared.schemas.detection.extraction import ExtractedPart

LONGEST_LINE = 65_536


class AnswerHead(BaseModel):
    """Goes before the text of a file, with what `Extraction` says of it, or says why there is none.

    Attributes:
        size: bytes of text in UTF-8, or of several texts as `part_slices` gives them.
        limit: whether the reason is a limit.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    size: NonNegativeInt = 0
    several: bool = False
    encoding: str | None = None
    title: str | None = None
    unread: str | None = None
    pages: tuple[NonNegativeInt, ...] = ()
    recognised: bool = False
    reason: Reason | None = None
    limit: bool = False
    message: str = ""


KEPT = ("encoding", "title", "unread", "pages", "recognised")
"""Of an extraction, what goes into the head as it is."""


def manifest_request(manifest: bytes, anchors: str | None) -> bytes:
    """What a worker is given in place of a file; `anchors` are the trusted certificates in PEM."""
    return json.dumps({"manifest": base64.b64encode(manifest).decode(), "anchors": anchors}).encode()


PARTS = TypeAdapter(tuple[ExtractedPart, ...])
SLICE_PARTS, _SLICE_BYTES = 256, 262_144


def part_slices(parts: Sequence[ExtractedPart]) -> Iterator[bytes]:
    """Lists of a few parts each in JSON, after a line with its size; a long part is alone in its list."""
    waiting: list[ExtractedPart] = []
    size = 0
    for part in parts:
        if waiting and (len(waiting) == SLICE_PARTS or size + len(part.text) > _SLICE_BYTES):
            yield _framed(waiting)
            waiting, size = [], 0
        waiting.append(part)
        size += len(part.text)
    yield _framed(waiting)


def _framed(parts: list[ExtractedPart]) -> bytes:
    data = PARTS.dump_json(tuple(parts))
    return b"%d\n%b" % (len(data), data)


_MODULE = "ttmark.detect_service.features.files.workers.worker"


class WorkerProcess:
    """Reads one file at a time; not to be used again once `usable` is false."""

    def __init__(self, process: Process, limits: ExtractionLimits) -> None:
        self._process = process
        self._sink = cast(asyncio.StreamWriter, process.stdin)
        self._source = cast(asyncio.StreamReader, process.stdout)
        self._limits = limits
        self._usable = True
        self.files = 0

    @classmethod
    async def start(cls, limits: ExtractionLimits) -> Self:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", "-B", "-m", _MODULE, json.dumps(asdict(limits))),
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,  # a traceback would show what is in the file
            limit=LONGEST_LINE,
            # Nothing else of the environment: it may hold secrets.
            # One thread (Tesseract's OpenMP): a confined process may make no others.
            env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "OMP_THREAD_LIMIT": "1"},
            start_new_session=True,  # a Ctrl-C is the service's to handle
        )
        return cls(process, limits)

    @property
    def usable(self) -> bool:
        return self._usable and self._process.returncode is None and self._runs()

    @property
    def pid(self) -> int:
        return self._process.pid

    async def read(self, filename: str, content: bytes) -> Extraction:
        """The text of a file. Whoever cancels this has to end the process.

        Raises:
            UnreadableFile: the file gives no text, or the process ended over it.
            LimitExceeded: the file takes more than it may.
        """
        self.files += 1
        try:
            return await self._exchange(filename, content)
        except (asyncio.IncompleteReadError, ConnectionError):
            # Only waited for: a kill now could take the status away, which says why it ended.
            self._usable = False
            raise self._death(await self._process.wait()) from None
        except (ValueError, asyncio.LimitOverrunError):
            self.kill()
            raise self._death(0) from None

    async def _exchange(self, filename: str, content: bytes) -> Extraction:
        head = {"filename": filename, "size": len(content)}
        self._sink.write(json.dumps(head).encode("ascii") + b"\n")
        self._sink.write(content)
        await self._sink.drain()
        answer = AnswerHead.model_validate_json(await self._source.readuntil(b"\n"))
        if answer.reason is not None:
            self._usable = answer.reason != "memory"
            raise (LimitExceeded if answer.limit else UnreadableFile)(answer.message, answer.reason)
        if answer.size > self._limits.text_bytes:
            raise ValueError
        if answer.several:
            parts = await self._parts(answer.size)
            return Extraction("", answer.encoding, parts, unread=answer.unread)
        text = await self._source.readexactly(answer.size)
        kept = answer.model_dump(include=set(KEPT))
        return Extraction(text.decode("utf-8"), **kept)

    async def _parts(self, left: int) -> tuple[ExtractedPart, ...]:
        parts: list[ExtractedPart] = []
        while left > 0 and len(parts) <= MOST_PARTS:
            line = await self._source.readuntil(b"\n")
            size = int(line)
            left -= len(line) + size
            if left < 0:
                raise ValueError
            parts += PARTS.validate_json(await self._source.readexactly(size), strict=True)
            await asyncio.sleep(0)  # what has come in is read without a pause
        if len(parts) > MOST_PARTS:
            raise ValueError
        return tuple(parts)

    def _death(self, status: int) -> UnreadableFile:
        if status == -signal.SIGXCPU:
            seconds = self._limits.cpu_seconds
            return LimitExceeded(
                f"Reading the file takes more than the limit of {seconds} CPU seconds.", "cpu"
            )
        return UnreadableFile(
            "The process that read the file ended: the file is damaged or malicious.", "crash"
        )

    def _runs(self) -> bool:
        """Asks the kernel: asyncio hears of an end a little later, and a file must not pay for that."""
        with suppress(ChildProcessError):
            flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, self._process.pid, flags) is None
        return False

    def kill(self) -> None:
        self._usable = False
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def gone(self) -> None:
        """Waits until the process has ended and its pipes are closed."""
        self._sink.close()
        await self._process.communicate()
