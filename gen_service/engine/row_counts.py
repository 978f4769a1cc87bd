"""Row counts for which a model computes every row to the same bits, whatever the other rows are.

Matrix libraries choose their kernel by the number of rows: on a CPU in fp32 one to three rows per thread take
another path, with another order of additions, than more rows do. The engine pads a pass to a count that was
seen, at start and on the model itself, to give the bits of a large pass.
"""

from collections.abc import Callable

import torch

REFERENCE_ROWS = 64
_ROWS_COMPARED = 4


class RowCounts:
    """Rounds a number of rows up to a safe one; beyond the measured range to a multiple of 4."""

    def __init__(self, safe: frozenset[int]) -> None:
        self._safe = safe

    @classmethod
    def measure(cls, logits_of: Callable[[int], torch.Tensor]) -> "RowCounts":
        """Compares the passes with 1 to 64 rows.

        Args:
            logits_of: logits [n, vocab] of the first n rows of always the same rows, from a pass of n rows.
        """
        reference = logits_of(REFERENCE_ROWS)

        def is_safe(rows: int) -> bool:
            shared = min(rows, _ROWS_COMPARED)
            logits = logits_of(rows)
            return torch.equal(logits[:shared], reference[:shared]) and torch.equal(
                logits[rows - 1], reference[rows - 1]
            )

        return cls(frozenset(rows for rows in range(1, REFERENCE_ROWS) if is_safe(rows)))

    def pad(self, rows: int) -> int:
        """The smallest safe number of rows that is at least `rows`."""
        padded = next((count for count in range(rows, REFERENCE_ROWS) if count in self._safe), None)
        return padded or max(REFERENCE_ROWS, rows + -rows % 4)
