"""What a detector is here: one that looks at many documents under many versions of one key at once."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark import AlignedEvidence, DirectEvidence, LocalizedEvidence, Watermark

Tokens = NDArray[np.int64]
Evidence = DirectEvidence | AlignedEvidence | LocalizedEvidence


@dataclass(frozen=True, slots=True)
class Tried:
    """What one key version says about one document.

    Attributes:
        evidence: of the best of the hypotheses; its p-value is corrected for their number.
        first_log10_p: p-value under the first hypothesis alone: chosen without looking, so uniform over texts
            without the watermark.
        blocks: the most blocks that count at once under any of the hypotheses.
    """

    evidence: Evidence
    first_log10_p: float
    blocks: int


BatchDetector = Callable[[Watermark, Sequence[bytes], Sequence[Tokens]], list[list[Tried]]]
"""Watermark, PRF keys, documents -> what was found [documents][keys]."""


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
