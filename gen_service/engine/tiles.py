"""How the tree rows of a pass are cut into the tiles that the Triton kernel's programs take."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

_BLOCK_ROWS = 16  # the fewest that a matrix product of the kernel takes


def tile_spans(spans: Iterable[tuple[int, int, int, int]], groups: int) -> NDArray[np.int64]:
    """Cuts spans (start, stop, first, last) into tiles [tiles, 4] of as many rows as a program takes."""
    step = rows_per_program(groups) // groups
    tiles = [
        (row, min(row + step, stop), first, last)
        for start, stop, first, last in spans
        for row in range(start, stop, step)
    ]
    return np.array(tiles, dtype=np.int64).reshape(-1, 4)


def rows_per_program(groups: int) -> int:
    """Packed query rows of one tile, `groups` for each row of the pass: a power of two."""
    return max(_BLOCK_ROWS, 1 << (groups - 1).bit_length())
