"""`ttmark detect FILE...`: texts of files to a running service; a file at fault costs no other its answer."""

import re
from collections.abc import Callable, Sequence

from ttmark.detect_service.documents_without_verdict import duration
from ttmark.services.cli.files import shown, spelled
from ttmark.services.cli.input_files import LONGEST_ID, NotExamined, named_files, read_texts
from ttmark.services.startup import warn
from ttmark.shared.batches import batches
from ttmark.shared.client import Client, ClientError, ServiceRefused
from ttmark.shared.schemas.detection import MAX_DOCUMENTS, DetectionRequest, DetectionResult, Document

Request = Callable[[list[Document]], DetectionRequest]
"""What asks about some of the files."""
Outcome = DetectionResult | NotExamined
# Of a request's texts in UTF-8, unless one has more: as JSON too below what a service takes by default.
_BYTES_AT_ONCE = 4 * 2**20
_TOO_LARGE = 413
CULPRIT = re.compile(r"inputs\[(\d+)\]")


def detect_files(names: Sequence[str], request: Request, client: Client) -> tuple[list[Outcome], int]:
    """An outcome for each file, in order, and how many files in folders were passed over.

    Raises:
        ClientError: the service is away, or refuses what is no file's fault.
    """
    files, skipped = named_files(names)
    outcomes: list[Outcome] = []
    for start in range(0, len(files), MAX_DOCUMENTS):
        outcomes += _examined(files[start : start + MAX_DOCUMENTS], request, client)
    return outcomes, skipped


def _examined(files: Sequence[str | NotExamined], request: Request, client: Client) -> list[Outcome]:
    texts = read_texts(files)
    documents = [
        Document(id=spelled(file)[-LONGEST_ID:], text=text)
        for file, text in zip(files, texts, strict=True)
        if isinstance(file, str) and isinstance(text, str)
    ]
    groups = batches(documents, lambda one: len((one.text or "").encode()), _BYTES_AT_ONCE)
    answers = iter([answer for group in groups for answer in _answers(group, request, client)])
    return [
        _named(next(answers), str(file)) if isinstance(text, str) else text
        for file, text in zip(files, texts, strict=True)
    ]


def _named(answer: Outcome, file: str) -> Outcome:
    """With the whole name: what is sent may be shorter."""
    if isinstance(answer, NotExamined):
        return NotExamined(shown(file), answer.reason)
    return answer.model_copy(update={"id": spelled(file)})


def _answers(documents: list[Document], request: Request, client: Client) -> list[Outcome]:
    """The service's results; a document that it refuses gets the reason, and the others are sent again."""
    answered: list[Outcome] = []
    while documents:
        try:
            results = client.detect(request(documents)).results
            return [
                *answered,
                *(one if one.error is None else NotExamined(one.id, one.error.message) for one in results),
            ]
        except Client.Refused as error:
            if error.retry_after is not None:
                say_wait(error.retry_after, error, waits=False)
                reason = f"the service takes no more for {duration(error.retry_after)}"
                return [*answered, *(NotExamined(document.id or "", reason) for document in documents)]
            named = CULPRIT.match(error.param or "")
            if named is None and error.status != _TOO_LARGE:
                raise
            if named is None and len(documents) > 1:
                middle = len(documents) // 2
                answered += _answers(documents[:middle], request, client)
                documents = documents[middle:]
                continue
            culprit = int(named[1]) if named else 0
            answered += _answers(documents[:culprit], request, client)
            answered.append(NotExamined(documents[culprit].id or "", str(error)))
            documents = documents[culprit + 1 :]
    return answered


def say_wait(seconds: float, error: ClientError, *, waits: bool = True) -> None:
    """Says at once that the service takes no more, for how long, and whether that is waited for.

    Of other errors nothing: they are told if they stay.
    """
    if not isinstance(error, ServiceRefused):
        return
    rest = "waiting" if waits else "the rest is not examined"
    warn(f"{error} Again in {duration(seconds)}: {rest}.")
