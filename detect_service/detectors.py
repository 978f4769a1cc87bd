"""What a detector is here: one that looks at many documents under many versions of one key at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark import AlignedEvidence, DirectEvidence, LocalizedEvidence, Watermark
from ttmark.shared.watermark.detectors.segments import Segment
from ttmark.shared.watermark.redrawn import Redrawn

Tokens = NDArray[np.int64]
OneMode = DirectEvidence | AlignedEvidence | LocalizedEvidence
ModeName = Literal["direct", "aligned", "localized"]


@dataclass(frozen=True, slots=True)
class CombinedEvidence:
    """What the three detectors together say; see `combined_detector`.

    Attributes:
        mode: the one that the p-value comes from.
        best: its evidence, with a p-value of its own.
        log10_p: corrected for the three.
        segments: of localized detection, corrected for the three.
    """

    mode: ModeName
    best: OneMode
    log10_p: float
    hypotheses: int
    segments: tuple[Segment, ...]

    @property
    def scored_blocks(self) -> int:
        """Of the mode that counts."""
        return self.best.scored_blocks


Evidence = OneMode | CombinedEvidence


def one_mode(evidence: Evidence) -> OneMode:
    """The evidence of the detector that counts."""
    return evidence.best if isinstance(evidence, CombinedEvidence) else evidence


Pool = Sequence[bytes]
"""The PRF keys of one key version, by number."""


@dataclass(frozen=True, slots=True)
class Way:
    """One of the ways in which a document can be found under a key version.

    Attributes:
        blocks: the most blocks that count at once under any of the hypotheses.
        correction: the number by which a p-value is multiplied for hypotheses of the version.
    """

    blocks: int
    correction: float


@dataclass(frozen=True, slots=True)
class Tried:
    """What one key version says about one document.

    Attributes:
        evidence: of the best of the hypotheses; its p-value and E-values are corrected for their number.
        first_log10_p: p-value under the first hypothesis alone: chosen without looking, so uniform over texts
            without the watermark.
        ways: one for each detector.
        pool_key: number of the key that the evidence was found with.
        fired: log10 p-values, of localized detection E-values, of the pool's keys that are within the
            detector's limit, each corrected for the number of hypotheses; smallest first.
    """

    evidence: Evidence
    first_log10_p: float
    ways: tuple[Way, ...]
    pool_key: int
    fired: tuple[float, ...]


BatchDetector = Callable[
    [Watermark, Sequence[Pool], Sequence[Tokens], Sequence[Redrawn | None] | None], list[list[Tried]]
]
"""Watermark, key versions, documents, their redrawn rows -> what was found [documents][versions]."""


def batches(rows: Sequence[int], size: int) -> Iterator[slice]:
    """Splits documents of `rows` rows each into runs of about `size` rows."""
    first = total = 0
    for index, count in enumerate(rows):
        total += count
        if total >= size:
            yield slice(first, index + 1)
            first, total = index + 1, 0
    if first < len(rows):
        yield slice(first, len(rows))
