"""Scores of the blocks that start at every position of a text, for the detectors that align."""

import numpy as np
from numpy.typing import NDArray

from shared.watermark.contexts import occurrence_numbers
from shared.watermark.detectors.tokens import context_and_block
from shared.watermark.prf import key_lanes
from shared.watermark.watermark import Watermark


def position_scores(watermark: Watermark, prf_key: bytes, tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    """Standardised score z of the block that starts at token H + i, for every i: [L - H - r + 1].

    Without watermark the scores are independent and identically distributed whatever the text is:
    a (context, block) that occurs again is scored with fresh words (`Watermark.score`). The null of
    any statistic of them therefore depends on their number alone.
    """
    width = watermark.context_width
    starts = np.arange(width, tokens.size - watermark.block_size + 1)
    contexts, blocks = context_and_block(watermark, tokens, starts)
    occurrences = occurrence_numbers(np.concatenate([contexts, blocks], axis=1))
    return watermark.standardize(watermark.score(key_lanes(prf_key), contexts, blocks, occurrences))
