"""`ttmark detect FILE...`: each file in one request to a running service, which reads it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from ttmark.detect_service.documents.documents_without_verdict import duration
from ttmark.services.cli.files import bytes_of, shown, spelled
from ttmark.services.cli.input_files import NotExamined, named_files
from ttmark.services.startup import in_one_line, warn
from ttmark.shared.client import Client, ClientError, ServiceRefused
from ttmark.shared.schemas.content_provenance import CheckedText
from ttmark.shared.schemas.detection import DetectionRequest, DetectionResult

Outcome = DetectionResult | NotExamined
_TOO_LARGE = 413
_LONGEST_NAME = 256


def detect_files(
    names: Sequence[str], request: DetectionRequest, client: Client
) -> tuple[list[Outcome], int]:
    """The outcomes of each file, in order, and how many files in folders were passed over.

    A file has one outcome for each of its texts; one at fault costs no other its answer.

    Args:
        request: what is asked of each text; its own documents are not.

    Raises:
        ClientError: the service is away, or refuses what is no file's fault.
    """
    files, skipped = named_files(names)
    outcomes: list[Outcome] = []
    for place, file in enumerate(files):
        try:
            outcomes += [file] if isinstance(file, NotExamined) else _outcomes(file, request, client)
        except OSError as error:
            outcomes.append(NotExamined(shown(str(file)), error.strerror or str(error)))
        except Client.Refused as error:
            if error.retry_after is not None:
                say_wait(error.retry_after, error, waits=False)
                reason = f"the service takes no more for {duration(error.retry_after)}"
                left = files[place:]
                outcomes += [NotExamined(shown(one), reason) if isinstance(one, str) else one for one in left]
                return outcomes, skipped
            if error.status != _TOO_LARGE and error.param != "file":
                raise
            outcomes.append(NotExamined(shown(str(file)), str(error)))
    return outcomes, skipped


def _outcomes(file: str, request: DetectionRequest, client: Client) -> Iterator[Outcome]:
    check = client.check_content(bytes_of(file), spelled(Path(file).name)[-_LONGEST_NAME:], request)
    for text in check.texts:
        name = spelled(file) if text.name is None else f"{spelled(file)} · {text.name}"
        yield _outcome(text, name)


def _outcome(text: CheckedText, name: str) -> Outcome:
    """Of one text; what of it was not read is said at once."""
    if text.recognised:
        typer.echo(f"{in_one_line(name)}: a machine read pictures (OCR), letters may be wrong", err=True)
    if text.unread:
        typer.echo(f"{in_one_line(name)}: {text.unread}", err=True)
    if text.result is None:
        return NotExamined(in_one_line(name), text.problem or "")
    if text.result.error is not None:
        return NotExamined(in_one_line(name), text.result.error.message)
    return text.result.model_copy(update={"id": name})


def say_wait(seconds: float, error: ClientError, *, waits: bool = True) -> None:
    """Says at once that the service takes no more, for how long, and whether that is waited for.

    Of other errors nothing: they are told if they stay.
    """
    if not isinstance(error, ServiceRefused):
        return
    rest = "waiting" if waits else "the rest is not examined"
    warn(f"{error} Again in {duration(seconds)}: {rest}.")
