"""What a detector is here: one that looks at many documents under many versions of one key at once."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from shared.watermark import AlignedEvidence, DirectEvidence, LocalizedEvidence, Watermark

Tokens = NDArray[np.int64]
Evidence = DirectEvidence | AlignedEvidence | LocalizedEvidence
BatchDetector = Callable[[Watermark, Sequence[bytes], Sequence[Tokens]], list[list[Evidence]]]
"""Watermark, PRF keys, documents -> evidence [documents][keys]."""


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
