"""Reads a document as each key's profile reads it, once per tokenizer."""

from collections.abc import Sequence

from detect_service.tokenizers import TokenizerSet
from shared.keys import UnlockedKey
from shared.schemas.detection import Document

Span = tuple[int, int]


class DocumentReader:
    """Token ids of one document, and where each token stands in its text.

    A text is encoded at most once per tokenizer, however many keys share it.
    """

    def __init__(self, document: Document, tokenizers: TokenizerSet) -> None:
        self._document = document
        self._tokenizers = tokenizers
        self._read: dict[str, tuple[Sequence[int], Sequence[Span] | None]] = {}

    def token_ids(self, key: UnlockedKey) -> Sequence[int]:
        """Token ids of the document under the key's tokenizer."""
        return self._encoding(key)[0]

    def spans(self, key: UnlockedKey) -> Sequence[Span] | None:
        """Half-open character span of each token; None for a document that came as token ids."""
        return self._encoding(key)[1]

    def _encoding(self, key: UnlockedKey) -> tuple[Sequence[int], Sequence[Span] | None]:
        if self._document.token_ids is not None:
            return self._document.token_ids, None
        fingerprint = key.profile.tokenizer_fingerprint
        if fingerprint not in self._read:
            tokenizer = self._tokenizers.get(fingerprint)
            if tokenizer is None:  # callers choose keys by `in tokenizers` first
                raise KeyError(fingerprint)
            encoded = tokenizer.encode_with_offsets(self._document.text or "")
            self._read[fingerprint] = encoded.ids, encoded.offsets
        return self._read[fingerprint]
