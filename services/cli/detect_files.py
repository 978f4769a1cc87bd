"""`ttmark detect FILE...`: texts of files to a running service; a file at fault costs no other its answer.

Also here, `ttmark detect --conversation`: messages of one conversation, each a file, or those of chats in
JSON.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import typer

from ttmark.detect_service.documents_without_verdict import duration
from ttmark.services.cli.files import shown
from ttmark.services.cli.input_files import NotExamined, named_files, read_texts
from ttmark.services.cli.terminal import print_named
from ttmark.services.runtime import StartupError
from ttmark.shared.client import Client, ClientError, ServiceRefused
from ttmark.shared.schemas.detection import MAX_DOCUMENTS, CombinedRequest, DetectionResult, Document
from ttmark.shared.schemas.detection_combined import CombinedResult, ConversationMessage

if TYPE_CHECKING:
    from ttmark.detect_service.options import DetectionOptions

Outcome = DetectionResult | NotExamined
# Of a request's texts in UTF-8, unless one has more: as JSON too below what a service takes by default.
_BYTES_AT_ONCE = 4 * 2**20
_TOO_LARGE = 413
_LONGEST_ID = 256
CULPRIT = re.compile(r"inputs\[(\d+)\]")


def detect_files(
    names: Sequence[str], options: "DetectionOptions", client: Client
) -> tuple[list[Outcome], int]:
    """An outcome for each file, in order, and how many files in folders were passed over.

    Raises:
        ClientError: the service is away, or refuses what is no file's fault.
    """
    files, skipped = named_files(names)
    outcomes: list[Outcome] = []
    for start in range(0, len(files), MAX_DOCUMENTS):
        outcomes += _examined(files[start : start + MAX_DOCUMENTS], options, client)
    return outcomes, skipped


def _examined(
    files: Sequence[str | NotExamined], options: "DetectionOptions", client: Client
) -> list[Outcome]:
    texts = read_texts(files)
    documents = [
        Document(id=file[-_LONGEST_ID:], text=text)
        for file, text in zip(files, texts, strict=True)
        if isinstance(file, str) and isinstance(text, str)
    ]
    answers = iter([answer for group in _groups(documents) for answer in _answers(group, options, client)])
    return [
        _named(next(answers), str(file)) if isinstance(text, str) else text
        for file, text in zip(files, texts, strict=True)
    ]


def _named(answer: Outcome, file: str) -> Outcome:
    """With the whole name: what is sent may be shorter."""
    if isinstance(answer, NotExamined):
        return NotExamined(shown(file), answer.reason)
    return answer.model_copy(update={"id": file})


def _groups(documents: Sequence[Document]) -> Iterator[list[Document]]:
    group: list[Document] = []
    size = 0
    for document in documents:
        length = len((document.text or "").encode())
        if group and size + length > _BYTES_AT_ONCE:
            yield group
            group, size = [], 0
        group.append(document)
        size += length
    if group:
        yield group


def _answers(documents: list[Document], options: "DetectionOptions", client: Client) -> list[Outcome]:
    """The service's results; a document that it refuses gets the reason, and the others are sent again."""
    answered: list[Outcome] = []
    while documents:
        try:
            results = client.detect(options.request(documents)).results
            return [*answered, *map(_outcome, results)]
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
                answered += _answers(documents[:middle], options, client)
                documents = documents[middle:]
                continue
            culprit = int(named[1]) if named else 0
            answered += _answers(documents[:culprit], options, client)
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
    typer.echo(f"ttmark: {error} Again in {duration(seconds)}: {rest}.", err=True)


def _outcome(result: DetectionResult) -> Outcome:
    return result if result.error is None else NotExamined(result.id, result.error.message)


if TYPE_CHECKING:
    from ttmark.detect_service.options import DetectionOptions

_CHAT = ".json"
_WRITER = "assistant"
_COLUMNS = ("tokens", "evidence so far", "key")


def detect_conversation(names: Sequence[str], options: "DetectionOptions", client: Client) -> CombinedResult:
    """The one result of the messages in the files, in order.

    Raises:
        StartupError: a file is not read, or there are no messages, or too many.
        ClientError: the service is away, or refuses.
    """
    messages = list(_messages(names))
    if not 1 <= len(messages) <= MAX_DOCUMENTS:
        raise StartupError(f"a conversation has 1 to {MAX_DOCUMENTS} messages, not {len(messages)}")
    request = CombinedRequest(
        inputs=messages,
        keys=None if options.keys is None else list(options.keys),
        fpr=options.fpr,
        normalize=options.normalize,
        conversation=True,
    )
    return client.detect(request).results[0]


def show_conversation(result: CombinedResult, *, as_json: bool) -> None:
    """Prints how the evidence grew, and the answer; or one JSON object."""
    if as_json:
        typer.echo(result.model_dump_json())
        return
    messages = result.messages or []
    print_named("message", [one.id for one in messages], _COLUMNS, [_row(one) for one in messages])
    if result.message is not None:
        typer.echo(f"{result.message.headline}. {result.message.explanation}")
        typer.echo(result.message.caution)


def _row(message: ConversationMessage) -> list[str]:
    key = message.key
    made_with = "" if key is None else f"{key.key_id} v{key.version}"
    if key is not None and key.pool_key is not None:
        made_with += f" #{key.pool_key}"
    evidence = "" if message.log10_e is None else f"10^{message.log10_e:.1f}"
    return [str(message.tokens), "left out" if message.error else evidence, made_with]


def _messages(names: Sequence[str]) -> Iterator[Document]:
    files, _ = named_files(names)
    for file, text in zip(files, read_texts(files), strict=True):
        if isinstance(text, NotExamined):
            raise StartupError(f"{text.name}: {text.reason}")
        name = shown(str(file))
        if str(file).lower().endswith(_CHAT):
            for number, one in enumerate(_of_chat(name, text), start=1):
                yield Document(id=f"{name} #{number}"[-_LONGEST_ID:], text=one)
        else:
            yield Document(id=name[-_LONGEST_ID:], text=text)


def _of_chat(name: str, text: str) -> Iterator[str]:
    """What a model wrote in a chat: its `messages` with the role `assistant`."""
    try:
        chat = json.loads(text)
        for message in chat["messages"]:
            if message["role"] == _WRITER:
                yield _text_of(message.get("content"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise StartupError(
            f"{name}: not a chat in JSON, an object with `messages` of role and content"
        ) from None


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")
