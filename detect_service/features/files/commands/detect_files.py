"""`ttmark detect FILE...`: each file in one request to a running service, which reads it."""

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import typer

from ttmark.detect_service.features.files.commands.input_files import LONGEST_ID, NotExamined, named_files
from ttmark.services.cli.files import bytes_of, shown, spelled
from ttmark.services.cli.terminal import ProgressLine
from ttmark.services.startup import in_one_line, warn
from ttmark.shared.client import AnswerLost, AsyncClient, ClientError, ServiceRefused
from ttmark.shared.languages.words import duration
from ttmark.shared.outgoing import loop_of_calls
from ttmark.shared.schemas.detection.content_provenance import CheckedText, ContentProvenanceCheck
from ttmark.shared.schemas.detection.detect import DetectionRequest, DetectionResult

Outcome = DetectionResult | NotExamined
_AT_ONCE = 4
_OF_ONE_FILE = (413, 500)


def detect_files(
    names: Sequence[str], request: DetectionRequest, client: AsyncClient
) -> tuple[list[Outcome], int]:
    """The outcomes of each file, in order, and how many files in folders were passed over.

    A file has one outcome for each of its texts; one at fault costs no other its answer. Where the service is
    away, takes no more, or refuses what is no file's fault, answers that came stand and no more is asked.

    Args:
        request: what is asked of each text; its own documents are not.

    Raises:
        ClientError: the service is away, or refuses what is no file's fault, at the first file.
    """
    files, skipped = named_files(names)
    outcomes: list[Outcome] = []
    asked: list[Future[ContentProvenanceCheck] | NotExamined] = []
    end = ""
    with ProgressLine("file") as line:
        for place, file in enumerate(files):
            ahead = _AT_ONCE if place else 1  # the first tells whether there are answers
            asked += [_asked(one, end, request, client) for one in files[len(asked) : place + ahead]]
            try:
                if isinstance(answer := asked[place], NotExamined):
                    outcomes.append(answer)
                else:
                    outcomes += [_outcome(text, spelled(str(file))) for text in answer.result().texts]
            except ClientError as error:
                end = end or _end(error, first=place == 0)
                outcomes.append(NotExamined(shown(str(file)), end or str(error)))
            line.update(place + 1, (place + 1) / len(files))
    return outcomes, skipped


def _asked(
    file: str | NotExamined, end: str, request: DetectionRequest, client: AsyncClient
) -> Future[ContentProvenanceCheck] | NotExamined:
    """An answer to come, unless the file cannot be read, or there is an `end` of questions."""
    if isinstance(file, NotExamined) or end:
        return NotExamined(shown(file), end) if isinstance(file, str) else file
    try:
        call = client.check_content(bytes_of(file), spelled(Path(file).name)[-LONGEST_ID:], request)
    except OSError as error:
        return NotExamined(shown(file), error.strerror or str(error))
    return asyncio.run_coroutine_threadsafe(call, loop_of_calls())


def _end(error: ClientError, *, first: bool) -> str:
    """Why no more is asked, empty where an error is of one file. Raises one that leaves no answer to keep."""
    if isinstance(error, ServiceRefused):
        if error.retry_after is not None:
            again = duration(error.retry_after)
            warn(f"{error} Again in {again}: the rest is not examined.")
            return f"the service takes no more for {again}"
        if error.param == "file" or error.status in _OF_ONE_FILE:
            return ""
    if first:
        raise error
    return "" if isinstance(error, AnswerLost) else str(error)


def _outcome(text: CheckedText, name: str) -> Outcome:
    """Of one text of the file `name`; what of it was not read is said at once."""
    if text.name is not None:
        name = f"{name} · {text.name}"
    if text.recognised:
        typer.echo(f"{in_one_line(name)}: a machine read pictures (OCR), letters may be wrong", err=True)
    if text.unread:
        typer.echo(f"{in_one_line(name)}: {text.unread}", err=True)
    if text.result is None:
        return NotExamined(in_one_line(name), text.problem or "")
    if text.result.error is not None:
        return NotExamined(in_one_line(name), text.result.error.message)
    return text.result.model_copy(update={"id": name})


class SaidWaits:
    """Says once that the service takes no more for a while, and is waited for, however many calls wait.

    Of other errors nothing: they are told if they stay.
    """

    _until = 0.0

    def __call__(self, seconds: float, error: ClientError) -> None:
        now = time.monotonic()
        if isinstance(error, ServiceRefused) and now >= self._until:
            self._until = now + seconds
            warn(f"{error} Again in {duration(seconds)}: waiting.")
