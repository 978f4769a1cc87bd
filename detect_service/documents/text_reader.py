"""Reads a text in one of its readings: its tokens, and where each stands in the text that was sent."""

import unicodedata
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.documents.backend import TokenizerSet
from ttmark.detect_service.documents.document_reader import WEIGHTS, DocumentReader
from ttmark.detect_service.normalization.normalizer import NormalizedText, Span, TextNormalizer
from ttmark.shared.byte_reading import ByteReading, Content, byte_spans
from ttmark.shared.keys.held_keys import HeldKey
from ttmark.shared.schemas.detection.detect import Document, NormalizationReport, ReadingName
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.unknown_tokens import read_ids, read_with_offsets
from ttmark.shared.watermark.interruption import aside
from ttmark.shared.watermark.likelihood.reading import Reading


@dataclass(eq=False)
class TextReader(DocumentReader):
    """A text is encoded at most once per tokenizer, however many keys share it, and once more for places.

    Attributes:
        normalized: the text as it is read.
        most: the most tokens that are read; None: any.
    """

    tokenizers: TokenizerSet
    normalized: NormalizedText
    most: int | None
    _ids: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    _offsets: dict[str, list[Span]] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.normalized.text

    @property
    def content(self) -> Content:
        return self.text

    def normalization(self, undone: bool) -> NormalizationReport | None:
        return NormalizationReport(**self.normalized.counts._asdict(), undone=undone)

    def token_ids(self, key: HeldKey) -> NDArray[np.int64]:
        fingerprint = key.profile.tokenizer_fingerprint
        if fingerprint not in self._ids:
            ids = read_ids(self._tokenizer(key), self.text, self.most)
            self._ids[fingerprint] = np.array(ids, dtype=np.int64)
        return self._ids[fingerprint]

    def reading(self, key: HeldKey, of_text: ByteReading) -> Reading:
        return Reading(of_text.log_probs(byte_spans(self.text, self._offsets_under(key))))

    def characters(self, key: HeldKey, start: int, end: int) -> Span | None:
        offsets = self._offsets_under(key)
        return self.normalized.original_span(offsets[start][0], self._with_marks(offsets, end))

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
            self._offsets[fingerprint] = read_with_offsets(self._tokenizer(key), self.text).offsets
        return self._offsets[fingerprint]

    def _tokenizer(self, key: HeldKey) -> TextTokenizer:
        return self.tokenizers[key.profile.tokenizer_fingerprint]


def text_readers(
    document: Document,
    tokenizers: TokenizerSet,
    normalizer: TextNormalizer,
    *,
    normalize: bool,
    most: int | None = None,
) -> list[TextReader]:
    """A text as it was sent, with `normalize` in all its readings: a reader for each text, by their order.

    How many there are depends on the text alone, never on a key. Their weights add up to 1.
    """
    with aside():  # regular expressions over the whole text
        texts = normalizer.readings(document.text or "")
    if not normalize:
        return [TextReader(document, ["as_sent"], 1.0, tokenizers, texts["as_sent"], most)]
    alike: dict[str, list[ReadingName]] = {}
    for name, one in texts.items():
        alike.setdefault(one.text, []).append(name)
    weights = [sum(WEIGHTS[name] for name in names) for names in alike.values()]
    return [
        TextReader(document, names, weight, tokenizers, texts[names[0]], most)
        for names, weight in zip(alike.values(), weights, strict=True)
    ]
