"""Row counts for which a model computes every row to the same bits, whatever the other rows are.

Matrix libraries choose their kernel by the number of rows: on a CPU in fp32 one to three rows per thread take
another path, with another order of additions, than more rows do. The engine pads a pass to a count that was
seen, at start and on the model itself, to give the bits of a large pass.
"""

import math
from collections.abc import Callable, Iterable

import torch

REFERENCE_ROWS = 64
_ROWS_COMPARED = 4
_ALL_UP_TO = 16  # larger counts are rounded up to a multiple of four, which costs little and halves the start
_LANES = 32


class RowCounts:
    """Rounds a number of rows up to a safe one; from 64 on to a multiple of 4 and of `multiple`.

    Args:
        safe: counts below 64 that give the bits of a large pass.
        multiple: every count is one of this number.
    """

    def __init__(self, safe: frozenset[int], multiple: int = 1) -> None:
        self._safe = frozenset(rows for rows in safe if rows % multiple == 0)
        self._step = math.lcm(4, multiple)

    @classmethod
    def measure(cls, logits_of: Callable[[int], torch.Tensor], widths: Iterable[int]) -> "RowCounts":
        """Compares the passes with up to 16 rows, and with 20, 24, ... 64.

        Args:
            logits_of: logits [n, vocab] of the first n rows of always the same rows, from a pass of n rows.
            widths: numbers of elements per row on which the model computes exponentials or angles. Rows are
                filled up to whole vector registers, as elements behind the last one are computed differently.
        """
        multiple = math.lcm(*(_LANES // math.gcd(_LANES, width) for width in widths))
        reference = logits_of(REFERENCE_ROWS)

        def is_safe(rows: int) -> bool:
            shared = min(rows, _ROWS_COMPARED)
            logits = logits_of(rows)
            return torch.equal(logits[:shared], reference[:shared]) and torch.equal(
                logits[rows - 1], reference[rows - 1]
            )

        counts = [*range(1, _ALL_UP_TO), *range(_ALL_UP_TO, REFERENCE_ROWS, 4)]
        return cls(frozenset(rows for rows in counts if is_safe(rows)), multiple)

    def pad(self, rows: int) -> int:
        """The smallest safe number of rows that is at least `rows`."""
        padded = next((count for count in range(rows, REFERENCE_ROWS) if count in self._safe), None)
        return padded or max(REFERENCE_ROWS, rows + -rows % self._step)
