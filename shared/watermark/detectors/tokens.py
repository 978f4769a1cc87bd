"""Token sequences as the detectors read them."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.contexts import windows
from ttmark.shared.watermark.prf import TOKEN_MASK
from ttmark.shared.watermark.watermark import Watermark


def check_tokens(tokens: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Tokens as an int64 array [L]. Raises ValueError unless all are in 0..2**32-2."""
    try:
        array = np.asarray(tokens, dtype=np.int64)
    except OverflowError:
        array = np.array([-1])
    if array.ndim != 1:
        raise ValueError("tokens must be one flat sequence")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= TOKEN_MASK):
        raise ValueError(f"tokens must be in 0..{TOKEN_MASK - 1}")
    return array


def context_and_block(
    watermark: Watermark, tokens: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Contexts [N, H] and blocks [N, r] of the blocks that start at `starts` [N]."""
    width = watermark.context_width
    if starts.size == 0:
        return np.empty((0, width), np.int64), np.empty((0, watermark.block_size), np.int64)
    rows = windows(tokens, starts - width, width + watermark.block_size)
    return rows[:, :width], rows[:, width:]
