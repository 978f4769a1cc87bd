"""What a watermarking scheme has to provide."""

from dataclasses import Field
from typing import Any, ClassVar, Protocol

from shared.watermark.arrays import Array
from shared.watermark.nulls import Null
from shared.watermark.ragged import Segments

Parameter = int | float | bool


class Scheme(Protocol):
    """A distortion-free reweighting rule and the score that detects it.

    A scheme is a frozen dataclass whose fields are its parameters with their defaults; its
    constructor raises ValueError for values out of range. PRF words are 64-bit lanes as int64:
    `words` [N, word_count] of the blocks, `context_words` [.., word_count] of the contexts.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    name: ClassVar[str]
    default_context_width: ClassVar[int]
    uses_context_words: ClassVar[bool]
    """Whether `reweight` and `score` read `context_words`; others may be given none."""

    @property
    def word_count(self) -> int:
        """PRF words of 64 bits that each block needs."""
        ...

    @property
    def null(self) -> Null:
        """Distribution of `score` over random words."""
        ...

    def reweight(self, probs: Array, words: Array, context_words: Array, segments: Segments) -> Array:
        """P [N] -> P_w [N]; `context_words` has one row per segment. Segments sum to 1."""
        ...

    def score(self, words: Array, context_words: Array) -> Array:
        """Score [N] of emitted blocks; `context_words` has one row per block."""
        ...
