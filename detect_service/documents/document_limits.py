"""Reads the documents of requests, up to the longest that they may be."""

from collections.abc import Iterable, Sequence
from typing import Any

from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.documents.document_reader import DocumentReader
from ttmark.detect_service.documents.documents_without_verdict import is_fault
from ttmark.detect_service.documents.text_reader import text_readers
from ttmark.shared.http.service_errors import TooLarge
from ttmark.shared.keys.held_keys import HeldKey
from ttmark.shared.schemas.detection.detect import DetectionRequest, Document, DocumentError
from ttmark.shared.tokenization import BYTES_OF_A_TOKEN, TextTokenizer, TooManyTokens
from ttmark.shared.watermark.interruption import pause

# Of a list that is cut, before other threads may run.
_AT_ONCE = 65_536


class RefusedDocument(Document):
    """Stands in a request for a document that is over a limit, and holds none of it."""

    refusal: DocumentError

    @classmethod
    def stored(cls, fields: dict[str, Any]) -> Document:
        """A document, or one that was refused, from its fields."""
        if "refusal" in fields:
            return cls.model_validate(fields)
        return Document.model_construct(**fields)

    @classmethod
    def of(cls, document: Document, error: TooLarge) -> "RefusedDocument":
        """In place of a document, with the error that it gets."""
        why = DocumentError(code=error.code, message=error.message)
        return cls(id=document.id, text="", refusal=why)


def size_of(document: Document, enough: int, backend: DetectionBackend) -> int:
    """Token ids, or bytes of a text in UTF-8 without inserts: a document has hardly more tokens.

    Of a text with more characters than `enough` these: to count its bytes takes a look at each.
    """
    if document.text is None:
        return len(document.token_ids or ())
    text = backend.visible(document.text)
    return len(text) if text.isascii() or len(text) > enough else len(text.encode())


def sizes_to_read(readers: Iterable[DocumentReader], most: int) -> list[int]:
    return [len(one.text.encode()) for one in readers if 0 < len(one.text) <= most]


def check_size(index: int, document: Document, backend: DetectionBackend) -> int:
    """Holds a document to the longest by its size alone, which is returned.

    Raises:
        TooLarge: its token ids are more, or its bytes are more than so many tokens have.
    """
    most = backend.max_document_tokens
    limit = most if document.text is None else most * BYTES_OF_A_TOKEN
    size = size_of(document, limit, backend)
    if size > limit and document.text is None:
        raise too_many_tokens(index, most)
    if size > limit:
        raise TooLarge(
            f"The document has more bytes than the limit of {limit}, {BYTES_OF_A_TOKEN} for each of {most} "
            "tokens.",
            param=f"inputs[{index}]",
        )
    return size


def shorten(body: Any, most: int) -> None:
    """Cuts longer lists of token ids in parsed JSON to one more than `most`, without a look at the rest."""
    inputs = body.get("inputs") if isinstance(body, dict) else None
    for document in inputs if isinstance(inputs, list) else ():
        ids = document.get("token_ids") if isinstance(document, dict) else None
        while isinstance(ids, list) and len(ids) > most + 1:  # other threads run in between
            del ids[max(most + 1, len(ids) - _AT_ONCE) :]


def sized(documents: Sequence[Document], backend: DetectionBackend, *, alone: bool) -> list[Document]:
    """The documents, without those that their size alone refuses.

    Raises:
        TooLarge: the only document is one of them, and `alone` says that it ends the request.
    """
    kept: list[Document] = []
    for index, document in enumerate(documents):
        try:
            check_size(index, document, backend)
        except TooLarge as error:
            if alone and len(documents) == 1:
                raise
            document = RefusedDocument.of(document, error)
        kept.append(document)
    return kept


def check_text(index: int, text: str, tokenizers: Iterable[TextTokenizer], most: int) -> int:
    """Reads a text up to `most` tokens; how many under all tokenizers. Raises TooLarge: one has more."""
    read = 0
    for tokenizer in tokenizers:
        try:
            read += len(tokenizer.encode(text, most))
        except TooManyTokens:
            raise too_many_tokens(index, most) from None
    return read


def readers_of(request: DetectionRequest, backend: DetectionBackend) -> list[Sequence[DocumentReader]]:
    """Of each document a reader for each of its texts, of which nothing is encoded yet.

    There is none of a document that is refused or fails: `read_document` says so in its place.
    """
    found: list[Sequence[DocumentReader]] = []
    for index in range(len(request.inputs)):
        try:
            found.append(_readers(request, index, backend))
        except BaseException as error:
            if not (isinstance(error, TooLarge) or is_fault(error)):
                raise
            found.append(())
    return found


def _readers(request: DetectionRequest, index: int, backend: DetectionBackend) -> Sequence[DocumentReader]:
    document, most = request.inputs[index], backend.max_document_tokens
    check_size(index, document, backend)
    if document.text is None:
        return [DocumentReader(document, ["as_sent"], 1.0)]
    pause()
    return text_readers(
        document, backend.tokenizers, backend.normalizer, normalize=request.normalize, most=most
    )


def read_document(
    request: DetectionRequest,
    index: int,
    readers: Sequence[DocumentReader],
    keys: Sequence[HeldKey],
    backend: DetectionBackend,
) -> Sequence[DocumentReader] | DocumentError:
    """Document number `index`, with its tokens under all keys; or that it is too long.

    Args:
        readers: of it, as `readers_of` gives them.

    Raises:
        TooLarge: it is too long, and there is no other.
    """
    document = request.inputs[index]
    if isinstance(document, RefusedDocument):
        return document.refusal
    try:
        readers = readers or _readers(request, index, backend)
        for reader in readers:
            for key in keys:
                reader.token_ids(key)
    except (TooLarge, TooManyTokens) as error:
        if isinstance(error, TooManyTokens):
            error = too_many_tokens(index, backend.max_document_tokens)
        if len(request.inputs) == 1:
            raise error from None
        return DocumentError(code=error.code, message=error.message)
    return readers


def too_many_tokens(index: int, most: int) -> TooLarge:
    """The refusal of document number `index`."""
    return TooLarge(f"The document has more tokens than the limit of {most}.", param=f"inputs[{index}]")
