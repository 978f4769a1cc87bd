"""The documents of a job: rows as bulk runs read them, or texts of files and folders; how they are sent."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ttmark.detect_service.features.files.commands.input_files import (
    LONGEST_ID,
    NotExamined,
    named_files,
    read_texts,
)
from ttmark.services.cli.files import spelled
from ttmark.services.startup import no_start_after, require
from ttmark.shared.client import Client
from ttmark.shared.schemas.detection.detect import Document
from ttmark.shared.schemas.detection.jobs import JobRequest, JobStatus

_OF_ROWS = (".jsonl", ".ndjson", ".csv", ".parquet")
_CULPRIT = re.compile(r"inputs\[(\d+)\]")
# All documents are sent again for each that the service refuses.
_MOST_REFUSED = 20


def job_documents(sources: Sequence[str]) -> tuple[list[Document], list[NotExamined], int]:
    """The rows of one file of rows; else each file is a document, and of each folder those in it.

    A document is called by its row's id or number, or by its file.

    Returns:
        What can be sent, what cannot be read, and how many files in folders were passed over.

    Raises:
        StartupError: a file of rows cannot be read.
    """
    if len(sources) == 1 and Path(sources[0]).suffix in _OF_ROWS:
        named, skipped = _rows(Path(sources[0])), 0
    else:
        files, skipped = named_files(sources)
        names = [file.name if isinstance(file, NotExamined) else spelled(file) for file in files]
        named = list(zip(names, read_texts(files), strict=True))
    readable, unreadable = list[Document](), list[NotExamined]()
    for name, content in named:
        match content:
            case NotExamined():
                unreadable.append(content)
            case str():
                readable.append(Document(id=name[-LONGEST_ID:], text=content))
            case Document():
                readable.append(content.model_copy(update={"id": name[-LONGEST_ID:]}))
    return readable, unreadable, skipped


def submitted(
    client: Client,
    documents: Sequence[Document],
    options: Mapping[str, object],
    idempotency_key: str | None = None,
) -> tuple[JobStatus, list[NotExamined]]:
    """A job without the documents that the service finds fault with, and those.

    Raises:
        ClientError: the service refuses what is no document's fault, or finds fault with too many.
    """
    left, refused = list(documents), list[NotExamined]()
    while True:
        try:
            request = JobRequest.model_validate({"inputs": left, **options})
            return client.submit_job(request, idempotency_key=idempotency_key), refused
        except Client.Refused as error:
            named = _CULPRIT.match(error.param or "")
            if named is None or len(left) == 1 or len(refused) == _MOST_REFUSED:
                raise
            refused.append(NotExamined(left[int(named[1])].id or "", str(error)))
            del left[int(named[1])]


def _rows(path: Path) -> list[tuple[str, str | Document | NotExamined]]:
    require("bulk" if path.suffix == ".parquet" else "detect")
    # It has the service, which other commands start without.
    from ttmark.detect_service.features.bulk.input_formats import BulkError, open_source

    rows: list[tuple[str, str | Document | NotExamined]] = []
    with no_start_after(BulkError):
        for row in open_source(path).rows(0):
            row_id, document = row.parse()
            name = row_id or str(row.number)
            rows.append((name, document if isinstance(document, Document) else NotExamined(name, document)))
    return rows
