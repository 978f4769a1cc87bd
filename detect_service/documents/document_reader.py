"""Reads a document as each key's profile reads it: in one reading, once per tokenizer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.normalization.normalizer import Span
from ttmark.shared.byte_reading import ByteReading, Content, id_ends
from ttmark.shared.keys.held_keys import HeldKey
from ttmark.shared.schemas.detection.detect import Document, NormalizationReport, ReadingName
from ttmark.shared.watermark.likelihood.reading import Reading

WEIGHTS: Mapping[ReadingName, float] = {"as_sent": 0.5, "unwrapped": 0.25, "typography": 0.25}
"""The parts of the rate that the readings of a text have."""


@dataclass(eq=False)
class DocumentReader:
    """A document that came as token ids; `TextReader` is of a text.

    Attributes:
        names: of the readings that it stands for, one at least: those of a text that are the same.
        weight: their parts of the rate together.
    """

    document: Document
    names: Sequence[ReadingName]
    weight: float

    @property
    def text(self) -> str:
        """What the tokenizers are given; empty for token ids."""
        return ""

    @property
    def content(self) -> Content:
        """What a language model is given: the text, or the token ids that came in its place."""
        return tuple(self.document.token_ids or ())

    def normalization(self, _: bool) -> NormalizationReport | None:
        """What can hide a watermark in the text; None for a document that came as token ids."""
        return None

    def token_ids(self, _: HeldKey) -> NDArray[np.int64]:
        """Token ids [tokens] under the key's tokenizer. Raises TooManyTokens: more than may be read."""
        return np.array(self.document.token_ids, dtype=np.int64)

    def reading(self, key: HeldKey, of_text: ByteReading) -> Reading:
        """What a language model says of the text, by tokens of the key's tokenizer."""
        ends = id_ends(self.token_ids(key).size)
        return Reading(of_text.log_probs(np.column_stack([ends - ends[:1], ends])))

    def characters(self, _: HeldKey, __: int, ___: int) -> Span | None:
        """The half-open span of the submitted text that tokens first..last cover; None without a text."""
        return None
