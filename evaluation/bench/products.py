"""The matrix products of a model alone: what a pass costs at least, whoever computes it."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

_READ_BYTES = 256 * 2**20
_REPEATS = 5

Shape = tuple[int, int]
"""Inputs and outputs of a product."""


@dataclass(frozen=True, slots=True)
class ProductTimes:
    """Processor seconds of all products of a pass over some rows.

    Attributes:
        layouts: with every matrix [in, out], with every matrix [out, in].
        best: with the faster layout for each shape.
    """

    rows: int
    layouts: tuple[float, float]
    best: float


class Products:
    """A model's matrices in both layouts, multiplied in the order of a pass, so that no cache holds them.

    Args:
        matrices: [in, out] each, in any layout.
        clock: processor time.
    """

    def __init__(
        self, matrices: Iterable[torch.Tensor], clock: Callable[[], float] = time.process_time
    ) -> None:
        self._clock = clock
        self._pairs = [(matrix.contiguous(), matrix.t().contiguous().t()) for matrix in matrices]
        self._choices: dict[int, dict[Shape, int]] = {}

    @property
    def weight_bytes(self) -> int:
        """Bytes that a pass reads at least."""
        return sum(pair[0].numel() * pair[0].element_size() for pair in self._pairs)

    def measure(self, rows: int) -> ProductTimes:
        """Times every product in both layouts in turns; the fastest of five turns counts, for each shape."""
        least = [self._turn(rows, layout) for layout in (0, 1)]
        for _ in range(_REPEATS - 1):
            for layout in (0, 1):
                for shape, seconds in self._turn(rows, layout).items():
                    least[layout][shape] = min(least[layout][shape], seconds)
        shapes = least[0].keys()
        self._choices[rows] = {shape: int(least[1][shape] < least[0][shape]) for shape in shapes}
        best = sum(min(least[0][shape], least[1][shape]) for shape in shapes)
        return ProductTimes(rows, (sum(least[0].values()), sum(least[1].values())), best)

    def seconds(self, rows: int) -> float:
        """One pass over `rows` rows, in the layouts that were fastest at the nearest measured number."""
        nearest = min(self._choices, key=lambda count: abs(count - rows))
        choices = self._choices[nearest]
        inputs = self._inputs(rows)
        started = self._clock()
        for pair in self._pairs:
            torch.mm(inputs[pair[0].shape[0]], pair[choices[_shape(pair[0])]])
        return self._clock() - started

    def _turn(self, rows: int, layout: int) -> dict[Shape, float]:
        inputs = self._inputs(rows)
        spent: dict[Shape, float] = defaultdict(float)
        for pair in self._pairs:
            started = self._clock()
            torch.mm(inputs[pair[0].shape[0]], pair[layout])
            spent[_shape(pair[0])] += self._clock() - started
        return spent

    def _inputs(self, rows: int) -> dict[int, torch.Tensor]:
        widths = {pair[0].shape[0] for pair in self._pairs}
        return {width: self._pairs[0][0].new_ones((rows, width)) for width in widths}


def read_bandwidth(clock: Callable[[], float] = time.process_time, size: int = _READ_BYTES) -> float:
    """Bytes that are read from memory in a processor second, the best of five sums of `size` bytes."""
    numbers = torch.ones(size // 4)
    seconds = []
    for _ in range(_REPEATS):
        started = clock()
        numbers.sum()
        seconds.append(clock() - started)
    return size / max(min(seconds), 1e-9)


def usual_rows(most: int) -> Sequence[int]:
    """Powers of two up to the first that is at least `most`."""
    return [1 << power for power in range((most - 1).bit_length() + 1)]


def _shape(matrix: torch.Tensor) -> Shape:
    return (matrix.shape[0], matrix.shape[1])
