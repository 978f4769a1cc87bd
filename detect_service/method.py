"""What a way to look for marks consists of; the default one is in `detectors.py`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ttmark.detect_service.verdict import Detector
from ttmark.shared.keys.held_keys import UnlockedKey
from ttmark.shared.schemas.detection.detect import DetectionResponse, DetectionResult, Document
from ttmark.shared.watermark.likelihood.reading import Reading
from ttmark.shared.watermark.schemes.watermark import Watermark

DocumentCost = Callable[[int, int], float]
"""Index of a document, its tokens -> hashed blocks for one key version."""


@dataclass(frozen=True, slots=True)
class Look:
    """How closely one document, read in one way, is looked at.

    Attributes:
        log10_limit: the corrected p-value within which a key counts as found.
        share: of the rate, of this step.
        reading: what a language model says of the document's tokens under a key; None: none read it.
    """

    document: Document
    log10_limit: float
    share: float
    secret: bytes
    reading: Callable[[UnlockedKey], Reading | None]


@dataclass(frozen=True, slots=True)
class Method:
    """How requests of one kind are answered.

    Attributes:
        detector: of a request, for a document.
        cost: of a request's documents under a key version with a pool of so many keys.
        result, response: what is answered.
        beta: what skipping a token costs in the alignment whose blocks are shown.
    """

    detector: Callable[[Any, Look], Detector]
    cost: Callable[[Any, Sequence[Document], Watermark, int], DocumentCost]
    result: type[DetectionResult]
    response: type[DetectionResponse]
    beta: Callable[[Any], float]
