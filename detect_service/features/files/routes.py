"""Texts of the files that requests bring, metrics of what is read, and `POST /v1/extract`."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Annotated, get_args

import orjson
from fastapi import APIRouter, Body, Request, Response
from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.requests import ClientDisconnect
from starlette.responses import StreamingResponse

from ttmark.detect_service.api.body_route import body_route
from ttmark.detect_service.api.problems import BODY_PROBLEMS, Caller, problems
from ttmark.detect_service.features.files.text.encodings import is_binary
from ttmark.detect_service.features.files.text.extraction import (
    FORMAT_OF_ENDING,
    FORMATS,
    Extraction,
    LimitExceeded,
    Reason,
    UnreadableFile,
    format_of,
)
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionBusy, ExtractionWorkers
from ttmark.detect_service.features.files.workers.worker_process import PARTS, SLICE_PARTS
from ttmark.shared.access.scopes import Principal, Scope
from ttmark.shared.http.form_body import FORM_TYPE
from ttmark.shared.http.request_body import RunLong, unless_disconnected
from ttmark.shared.http.service_errors import TooLarge, TooManyRequests, Unprocessable
from ttmark.shared.schemas.detection.content_provenance import FileForm, UploadedFile
from ttmark.shared.schemas.detection.extraction import ExtractionResponse

_BEGINNINGS = (
    (b"%PDF-", ".pdf"),
    (b"{\\rtf", ".rtf"),
    (b"\x89PNG\r\n\x1a\n", ".png"),
    (b"\xff\xd8\xff", ".jpg"),
    (b"II*\0", ".tif"),
    (b"MM\0*", ".tif"),
)
_ZIP = b"PK\x03\x04"
# Of books and OpenDocument texts the first file inside says what they are, uncompressed.
_MIMETYPE = slice(30, 38), b"mimetype"
_INSIDE = (
    (b"application/vnd.oasis.opendocument.text", ".odt"),
    (b"application/epub+zip", ".epub"),
)
_PAGE = re.compile(rb"(?:<!--.{0,200}?-->|\s)*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE | re.S)
_MAILBOX = re.compile(rb"From \S{1,320} [^\n]{0,99}\d{4}[^\n]{0,60}\n")
# Two lines of a head that mails have: one alone can be a line of a text.
_HEAD = rb"(?:Received|Return-Path|Delivered-To|From|To|Cc|Subject|Date|Message-ID|MIME-Version|Content-Type)"
_MAIL = re.compile(rb"(?:%b:[^\n]{0,2000}\n(?:[ \t][^\n]{0,2000}\n){0,50}){2}" % _HEAD, re.IGNORECASE)
_TEXTS = ("text", "csv", None)  # None: an ending that nobody knows


def named_by_content(filename: str | None, content: bytes) -> str:
    """A name with the ending of what the bytes are, else with its own.

    Without an ending that is known, a web page, a mail and a mailbox are told by how they begin, and all else
    is plain text. What is binary and of no kind that is read gets an ending that nobody reads.
    """
    ending = PurePath(filename or "").suffix.lower()
    shown = _shown(content)
    if shown is not None:
        return f"file{shown}"
    kind = FORMAT_OF_ENDING.get(ending)
    if kind in _TEXTS and (content.startswith(_ZIP) or is_binary(content)):
        return "file.binary"
    if kind is not None:
        return f"file{ending}"
    head = content.removeprefix(b"\xef\xbb\xbf")
    for pattern, guessed in ((_PAGE, ".html"), (_MAILBOX, ".mbox"), (_MAIL, ".eml")):
        if pattern.match(head):
            return f"file{guessed}"
    return "file.txt"


def _shown(content: bytes) -> str | None:
    """The ending of the format that the first bytes show, if they show one."""
    for beginning, ending in _BEGINNINGS:
        if content.startswith(beginning):
            return ending
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return ".webp"
    if not content.startswith(_ZIP):
        return None
    place, word = _MIMETYPE
    if content[place] == word:
        return next((ending for kind, ending in _INSIDE if content[38:].startswith(kind)), None)
    return ".docx" if b"word/document" in content else None


EXTRACT_PATH = "/v1/extract"
REFUSALS = (*get_args(Reason), "busy")
_UNKNOWN = "other"
_SLICE_CHARACTERS = 262_144
_BUCKETS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)


class ExtractionMetrics:
    """Time by format and outcome, and refused files by reason."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._seconds = Histogram(
            "ttmark_extract_seconds",
            "Time to the text of a file or to its refusal, waiting included.",
            ["format", "outcome"],
            buckets=_BUCKETS,
            registry=registry,
        )
        self._refusals = Counter(
            "ttmark_extract_refusals", "Files that were not read.", ["reason"], registry=registry
        )
        for reason in REFUSALS:
            self._refusals.labels(reason)
        for name in FORMATS:
            self._seconds.labels(name, "read")

    @contextmanager
    def file(self, filename: str) -> Iterator[None]:
        """Times one file and records how it ended, by the exception that leaves the block."""
        started = time.perf_counter()
        outcome = "failed"
        try:
            yield
            outcome = "read"
        except (UnreadableFile, ExtractionBusy) as error:
            outcome = "refused"
            self._refusals.labels(error.reason).inc()
            raise
        except ClientDisconnect:
            outcome = "abandoned"
            raise
        finally:
            self._seconds.labels(_format(filename), outcome).observe(time.perf_counter() - started)


def _format(filename: str) -> str:
    try:
        return format_of(filename)
    except UnreadableFile:
        return _UNKNOWN


class FileReader:
    """Reads the files of requests, in processes that may die; nothing of them is kept."""

    def __init__(self, workers: ExtractionWorkers, metrics: ExtractionMetrics) -> None:
        self._workers = workers
        self._metrics = metrics

    async def text_of(self, file: UploadedFile, caller: Principal, request: Request) -> Extraction:
        """The text of a file, by what its bytes are and else by its name.

        Raises:
            Unprocessable, TooLarge: it gives none, or takes more than one file may.
            TooManyRequests: too many files wait, all together or of the caller's tenant.
            ClientDisconnect: the client has left, and reading was given up.
        """
        name = named_by_content(file.filename, file.content)
        work = self._workers.extract(name, file.content, owner=caller.tenant)
        try:
            with self._metrics.file(name):
                return await unless_disconnected(request.receive, work)
        except LimitExceeded as error:
            raise TooLarge(str(error), param="file") from error
        except UnreadableFile as error:
            raise Unprocessable(str(error), param="file") from error
        except ExtractionBusy as error:
            message = "Too many files are waiting to be read."
            raise TooManyRequests(message, retry_after=error.retry_after) from error


def extraction_router(reader: FileReader, run_long: RunLong) -> APIRouter:
    """The route that gives the text of a file; `run_long` validates long bodies."""
    router = APIRouter(tags=["detection"], route_class=body_route(Scope.DETECT, run_long))

    @router.post(EXTRACT_PATH, response_model=ExtractionResponse, responses=problems(*BODY_PROBLEMS))
    async def extract(
        body: Annotated[FileForm, Body(media_type=FORM_TYPE)], caller: Caller, request: Request
    ) -> Response:
        """The text of a file, or of a file that holds several texts each of them."""
        found = await reader.text_of(body.file, caller, request)
        return StreamingResponse(written(found), media_type="application/json")

    return router


async def written(found: Extraction) -> AsyncIterator[bytes]:
    """An `ExtractionResponse` in JSON, in slices; others have the event loop between them."""
    yield b'{"text":"'
    for start in range(0, len(found.text), _SLICE_CHARACTERS):
        yield orjson.dumps(found.text[start : start + _SLICE_CHARACTERS])[1:-1]
        await asyncio.sleep(0)
    rest = ExtractionResponse(
        text="",
        encoding=found.encoding,
        title=found.title,
        unread=found.unread,
        pages=list(found.pages) or None,
        recognised=found.recognised or None,
    )
    yield rest.model_dump_json(exclude_none=True).removeprefix('{"text":"').removesuffix("}").encode()
    for start in range(0, len(found.parts), SLICE_PARTS):
        yield b"," if start else b',"parts":['
        yield PARTS.dump_json(found.parts[start : start + SLICE_PARTS], exclude_none=True)[1:-1]
        await asyncio.sleep(0)
    yield b"]}" if found.parts else b"}"
