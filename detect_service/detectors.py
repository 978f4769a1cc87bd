"""What a detector is here: one that looks at one document under all keys of one version."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.keys.unlocked import UnlockedKey, UnlockedVersion
from ttmark.shared.watermark import AlignedEvidence, DirectEvidence, LocalizedEvidence
from ttmark.shared.watermark.redrawn import Redrawn

Tokens = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class LikelihoodFigures:
    """What the likelihood ratio says of a document under one version.

    Attributes:
        log10_p: corrected for the keys of the pool.
        of_keys: log10 E under each of them [keys].
        scored_blocks: positions with a (context, block) of their own.
        hypotheses: keys of the pool.
    """

    log10_p: float
    of_keys: NDArray[np.float64]
    scored_blocks: int
    hypotheses: int


Evidence = DirectEvidence | AlignedEvidence | LocalizedEvidence | LikelihoodFigures


@dataclass(frozen=True, slots=True)
class Tried:
    """What one key version says about one document.

    Attributes:
        evidence: of the best of the hypotheses; its p-value and E-values are corrected for their number.
        first_log10_p: p-value under the first hypothesis alone: chosen without looking, so uniform over texts
            without the watermark.
        blocks: the most blocks that count at once under any of the hypotheses.
        correction: the number by which a p-value is multiplied for hypotheses of the version.
        pool_key: number of the key that the evidence was found with.
        fired: the pool's keys that are within the detector's limit: log10 p-values, of localized detection
            E-values, corrected for the number of hypotheses, and the keys' numbers; smallest first.
    """

    evidence: Evidence
    first_log10_p: float
    blocks: int
    correction: float
    pool_key: int
    fired: tuple[tuple[float, int], ...]


Detector = Callable[[UnlockedKey, UnlockedVersion, Tokens, Redrawn | None], Tried]
"""A key, its version, the document as the key's profile reads it, rows that are spent -> what was found."""
