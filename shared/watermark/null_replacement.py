"""Rows whose scores are drawn from the null in place of those under a watermark's key."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Redrawn:
    """Of one text.

    Attributes:
        rows: whether the block that starts at token H + i is redrawn [L - H - r + 1].
        lanes: key of the draws [2], which marks no text: under it the row has the words of the null.
    """

    rows: NDArray[np.bool_]
    lanes: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class RowKeys:
    """Keys of some rows of many texts, in place of those that all of a text's rows share.

    Attributes:
        rows: which [K].
        lanes: their keys [K, 2].
    """

    rows: NDArray[np.int64]
    lanes: NDArray[np.int64]

    @classmethod
    def of(cls, parts: Sequence[tuple[Redrawn | None, NDArray[np.int64]]]) -> "RowKeys | None":
        """Of rows that follow each other, run after run; None where no row is redrawn.

        Args:
            parts: of each run the text's redrawn rows, and which row of the text each of the run is.
        """
        rows, lanes, first = [], [], 0
        for redrawn, of_text in parts:
            if redrawn is not None:
                drawn = np.flatnonzero(redrawn.rows[of_text])
                rows.append(first + drawn)
                lanes.append(np.tile(redrawn.lanes, (drawn.size, 1)))
            first += of_text.size
        if not any(part.size for part in rows):
            return None
        return cls(np.concatenate(rows), np.concatenate(lanes))

    def put_into(self, lanes: NDArray[np.int64]) -> None:
        """Replaces the keys [.., N, 2] of these rows."""
        lanes[..., self.rows, :] = self.lanes
