"""Reads a document as each key's profile reads it: once per tokenizer, up to the longest that it may be."""

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.normalization.normalizer import NormalizedText, TextNormalizer
from ttmark.shared.byte_reading import ByteReading, Content, id_ends
from ttmark.shared.http.service_errors import TooLarge
from ttmark.shared.keys.records import HeldKey
from ttmark.shared.manifests.wrapper import without_wrappers
from ttmark.shared.schemas.detection import DetectionRequest, Document, DocumentError, NormalizationReport
from ttmark.shared.tokenization import BYTES_OF_A_TOKEN, TextTokenizer, TooManyTokens, byte_spans
from ttmark.shared.watermark.interruption import aside
from ttmark.shared.watermark.likelihood.reading import Reading

Span = tuple[int, int]


@dataclass(eq=False, slots=True)
class DocumentReader:
    """Token ids of one document, and where each token stands in its text.

    A text is encoded at most once per tokenizer, however many keys share it, and once more for places in it.

    Attributes:
        document: what was sent.
        normalized: its text without tricks; None for a document that came as token ids.
        undo_tricks: whether the text is read as `TextNormalizer` gives it; positions are always those of the
            original.
        most: the most tokens that are read; None: any.
    """

    document: Document
    tokenizers: TokenizerSet
    normalized: NormalizedText | None
    undo_tricks: bool
    most: int | None = None
    _ids: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    _offsets: dict[str, list[Span]] = field(default_factory=dict)

    @classmethod
    def readings(
        cls,
        document: Document,
        tokenizers: TokenizerSet,
        normalizer: TextNormalizer,
        *,
        normalize: bool,
        most: int | None = None,
    ) -> list[Self]:
        """The document as it was sent; with `normalize` also without tricks, where that is another text.

        How many there are depends on the text alone, never on a key.
        """
        normalized = None
        if document.text is not None:
            with aside():  # regular expressions over the whole text
                normalized = normalizer.normalize(document.text)
        differs = normalized is not None and normalized.text != document.text
        both = (False, True) if normalize and differs else (False,)
        return [cls(document, tokenizers, normalized, undone, most) for undone in both]

    @property
    def text(self) -> str:
        """What the tokenizers are given; empty for a document that came as token ids."""
        undone = self.normalized if self.undo_tricks else None
        return undone.text if undone else self.document.text or ""

    @property
    def content(self) -> Content:
        """What a language model is given: the text, or the token ids that came in its place."""
        return tuple(self.document.token_ids or ()) if self.normalized is None else self.text

    def normalization(self, *, undone: bool) -> NormalizationReport | None:
        """What can hide a watermark in the text; None for a document that came as token ids."""
        if self.normalized is None:
            return None
        return NormalizationReport(**self.normalized.counts._asdict(), undone=undone)

    def token_ids(self, key: HeldKey) -> NDArray[np.int64]:
        """Token ids [tokens] of the document under the key's tokenizer.

        Raises:
            TooManyTokens: a text has more than `most`.
        """
        fingerprint = key.profile.tokenizer_fingerprint if self.normalized else ""
        if fingerprint not in self._ids:
            ids = (
                self._tokenizer(key).encode(self.text, self.most) if fingerprint else self.document.token_ids
            )
            self._ids[fingerprint] = np.array(ids, dtype=np.int64)
        return self._ids[fingerprint]

    def reading(self, key: HeldKey, of_text: ByteReading) -> Reading:
        """What a language model says of the text, by tokens of the key's tokenizer."""
        if self.normalized is None:
            ends = id_ends(self.token_ids(key).size)
            return Reading(of_text.log_probs(np.column_stack([ends - ends[:1], ends])))
        return Reading(of_text.log_probs(byte_spans(self.text, self._offsets_under(key))))

    def characters(self, key: HeldKey, start: int, end: int) -> Span | None:
        """The half-open span of the submitted text that tokens start..end cover; None without a text."""
        if self.normalized is None:
            return None
        offsets = self._offsets_under(key)
        first, last = offsets[start][0], self._with_marks(offsets, end)
        return self.normalized.original_span(first, last) if self.undo_tricks else (first, last)

    def _with_marks(self, offsets: list[Span], end: int) -> int:
        """Where the token before `end` ends, with accents that no token names.

        A tokenizer that composes a letter and its accents gives the place of the letter alone.
        """
        last = offsets[end - 1][1]
        following = offsets[end][0] if end < len(offsets) else len(self.text)
        while last < following and unicodedata.combining(self.text[last]):
            last += 1
        return last

    def _offsets_under(self, key: HeldKey) -> list[Span]:
        """Read when they are asked for: most answers hold none."""
        fingerprint = key.profile.tokenizer_fingerprint
        if fingerprint not in self._offsets:
            self._offsets[fingerprint] = self._tokenizer(key).encode_with_offsets(self.text).offsets
        return self._offsets[fingerprint]

    def _tokenizer(self, key: HeldKey) -> TextTokenizer:
        return self.tokenizers[key.profile.tokenizer_fingerprint]


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


def size_of(document: Document, enough: int) -> int:
    """Token ids, or bytes of a text in UTF-8 without manifests: a document has hardly more tokens.

    Of a text with more characters than `enough` these: to count its bytes takes a look at each.
    """
    if document.text is None:
        return len(document.token_ids or ())
    text = without_wrappers(document.text)
    return len(text) if text.isascii() or len(text) > enough else len(text.encode())


def sizes_to_read(request: DetectionRequest, most: int) -> list[int]:
    """Bytes of the documents that came as text and have at most so many characters."""
    texts = [document.text for document in request.inputs if document.text is not None]
    return [len(text.encode()) for text in texts if len(text) <= most]


def check_size(index: int, document: Document, most: int) -> int:
    """Holds a document to `most` tokens by its size alone, which is returned.

    Raises:
        TooLarge: its token ids are more, or its bytes are more than so many tokens have.
    """
    limit = most if document.text is None else most * BYTES_OF_A_TOKEN
    size = size_of(document, limit)
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


def sized(documents: Sequence[Document], most: int, *, alone: bool) -> list[Document]:
    """The documents, without those that their size alone refuses.

    Raises:
        TooLarge: the only document is one of them, and `alone` says that it ends the request.
    """
    kept: list[Document] = []
    for index, document in enumerate(documents):
        try:
            check_size(index, document, most)
        except TooLarge as error:
            if alone and len(documents) == 1:
                raise
            document = RefusedDocument.of(document, error)
        kept.append(document)
    return kept


def check_text(index: int, text: str, tokenizers: Iterable[TextTokenizer], most: int) -> int:
    """Reads a text up to `most` tokens; how many it has, under all tokenizers together.

    Raises:
        TooLarge: it has more under one of them.
    """
    read = 0
    for tokenizer in tokenizers:
        try:
            read += len(tokenizer.encode(text, most))
        except TooManyTokens:
            raise too_many_tokens(index, most) from None
    return read


def read_document(
    request: DetectionRequest, index: int, keys: Sequence[HeldKey], backend: DetectionBackend
) -> Sequence[DocumentReader] | DocumentError:
    """Document number `index` in all its readings, with its tokens under all keys; or that it is too long.

    Raises:
        TooLarge: it is too long, and there is no other.
    """
    document, most = request.inputs[index], backend.max_document_tokens
    if isinstance(document, RefusedDocument):
        return document.refusal
    try:
        check_size(index, document, most)
        readings = DocumentReader.readings(
            document, backend.tokenizers, backend.normalizer, normalize=request.normalize, most=most
        )
        for reader in readings:
            for key in keys:
                reader.token_ids(key)
    except (TooLarge, TooManyTokens) as error:
        if isinstance(error, TooManyTokens):
            error = too_many_tokens(index, most)
        if len(request.inputs) == 1:
            raise error from None
        return DocumentError(code=error.code, message=error.message)
    return readings


def too_many_tokens(index: int, most: int) -> TooLarge:
    """The refusal of document number `index`."""
    return TooLarge(f"The document has more tokens than the limit of {most}.", param=f"inputs[{index}]")
