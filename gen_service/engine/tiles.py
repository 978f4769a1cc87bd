"""How the tree rows of a pass are cut into the tiles that a kernel takes."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray


def tile_spans(spans: Iterable[tuple[int, int, int, int]], step: int) -> NDArray[np.int64]:
    """Cuts spans (start, stop, first, last) into tiles [tiles, 4] of at most `step` rows."""
    tiles = [
        (row, min(row + step, stop), first, last)
        for start, stop, first, last in spans
        for row in range(start, stop, step)
    ]
    return np.array(tiles, dtype=np.int64).reshape(-1, 4)
