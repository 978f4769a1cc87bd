"""Reads a document as each key's profile reads it, once per tokenizer."""

import unicodedata
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.backend import TokenizerSet
from ttmark.detect_service.normalization import NormalizedText, TextNormalizer
from ttmark.shared.byte_reading import ByteReading
from ttmark.shared.keys.unlocked import HeldKey
from ttmark.shared.schemas.detection import Document, NormalizationReport
from ttmark.shared.token_spans import byte_spans
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.pauses import MadeOnce, aside

Span = tuple[int, int]


@dataclass(frozen=True)
class _Reading:
    ids: NDArray[np.int64]
    text: str
    tokenizer: TextTokenizer | None

    @MadeOnce
    def offsets(self) -> list[Span] | None:
        """Read when they are asked for: most answers hold none."""
        if self.tokenizer is None:
            return None
        return self.tokenizer.encode_with_offsets(self.text).offsets


class DocumentReader:
    """Token ids of one document, and where each token stands in its text.

    A text is encoded at most once per tokenizer, however many keys share it, and once more for places in it.

    Attributes:
        document: what was sent.
        undo_tricks: whether the text is read as `TextNormalizer` gives it; positions are always those of the
            original.
        most: the most tokens that are read; None: any.
    """

    def __init__(
        self,
        document: Document,
        tokenizers: TokenizerSet,
        normalized: NormalizedText | None,
        *,
        undo_tricks: bool,
        most: int | None = None,
    ) -> None:
        self.document = document
        self.most = most
        self.undo_tricks = undo_tricks
        self._tokenizers = tokenizers
        self._normalized = normalized
        self._readings: dict[str, _Reading] = {}

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
        normalized = None if document.text is None else _normalized(normalizer, document.text)
        differs = normalized is not None and normalized.text != document.text
        both = (False, True) if normalize and differs else (False,)
        return [cls(document, tokenizers, normalized, undo_tricks=undone, most=most) for undone in both]

    @property
    def text(self) -> str:
        """What the tokenizers are given; empty for a document that came as token ids."""
        undone = self._normalized if self.undo_tricks else None
        return undone.text if undone else self.document.text or ""

    def normalization(self, *, undone: bool) -> NormalizationReport | None:
        """What can hide a watermark in the text; None for a document that came as token ids."""
        if self._normalized is None:
            return None
        return NormalizationReport(**self._normalized.counts._asdict(), undone=undone)

    def token_ids(self, key: HeldKey) -> NDArray[np.int64]:
        """Token ids [tokens] of the document under the key's tokenizer.

        Raises:
            TooManyTokens: a text has more than `most`.
        """
        return self._reading(key).ids

    def reading(self, key: HeldKey, of_text: ByteReading) -> Reading:
        """What a language model says of the text, by tokens of the key's tokenizer."""
        offsets = self._reading(key).offsets or []
        return Reading(of_text.log_probs(byte_spans(self.text, offsets)))

    def characters(self, key: HeldKey, start: int, end: int) -> Span | None:
        """The half-open span of the submitted text that tokens start..end cover; None without a text."""
        offsets = self._reading(key).offsets
        if offsets is None or self._normalized is None:
            return None
        first, last = offsets[start][0], self._with_marks(offsets, end)
        return self._normalized.original_span(first, last) if self.undo_tricks else (first, last)

    def _with_marks(self, offsets: list[Span], end: int) -> int:
        """Where the token before `end` ends, with accents that no token names.

        A tokenizer that composes a letter and its accents gives the place of the letter alone.
        """
        last = offsets[end - 1][1]
        following = offsets[end][0] if end < len(offsets) else len(self.text)
        while last < following and unicodedata.combining(self.text[last]):
            last += 1
        return last

    def _reading(self, key: HeldKey) -> _Reading:
        fingerprint = key.profile.tokenizer_fingerprint if self._normalized else ""
        if fingerprint not in self._readings:
            self._readings[fingerprint] = self._read(fingerprint)
        return self._readings[fingerprint]

    def _read(self, fingerprint: str) -> _Reading:
        if self._normalized is None:
            return _Reading(np.array(self.document.token_ids, dtype=np.int64), "", None)
        tokenizer = self._tokenizers.get(fingerprint)
        if tokenizer is None:  # callers choose keys by `in tokenizers` first
            raise KeyError(fingerprint)
        ids = tokenizer.encode(self.text, self.most)
        return _Reading(np.array(ids, dtype=np.int64), self.text, tokenizer)


def _normalized(normalizer: TextNormalizer, text: str) -> NormalizedText:
    with aside():  # regular expressions over the whole text
        return normalizer.normalize(text)
