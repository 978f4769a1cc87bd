"""The matrix products of a model alone: what a pass costs at least, whoever computes it."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from ttmark.gen_service.engine.matrix import Matrix

_READ_BYTES = 256 * 2**20
_REPEATS = 5

Shape = tuple[int, int]
"""Inputs and outputs of a product."""


@dataclass(frozen=True, slots=True)
class ProductTimes:
    """Processor seconds of all products of a pass over some rows.

    Attributes:
        layouts: with every matrix [in, out], with every matrix [out, in], and with every matrix packed.
        best: with the faster layout for each shape.
    """

    rows: int
    layouts: tuple[float, ...]
    best: float


class Products:
    """A model's matrices in every layout, multiplied in the order of a pass, so that no cache holds them.

    Args:
        matrices: [in, out] each, in any layout.
        clock: processor time.
        packed: whether oneDNN's own layout is one of them.
    """

    def __init__(
        self,
        matrices: Iterable[torch.Tensor],
        clock: Callable[[], float] = time.process_time,
        *,
        packed: bool = False,
    ) -> None:
        self._clock = clock
        self._layouts = [_layouts(matrix, packed) for matrix in matrices]
        self._choices: dict[int, dict[Shape, int]] = {}

    @property
    def weight_bytes(self) -> int:
        """Bytes that a pass reads at least."""
        return sum(layouts[0].plain.nbytes for layouts in self._layouts)

    def measure(self, rows: int) -> ProductTimes:
        """Times every product in each layout in turns; the fastest of five turns counts, for each shape."""
        layouts = range(len(self._layouts[0]))
        turns = [[self._turn(rows, layout) for layout in layouts] for _ in range(_REPEATS)]
        shapes = turns[0][0].keys()
        least = [
            {shape: min(turn[layout][shape] for turn in turns) for shape in shapes} for layout in layouts
        ]
        fastest = {shape: min(layouts, key=lambda layout: least[layout][shape]) for shape in shapes}
        self._choices[rows] = fastest
        best = sum(least[layout][shape] for shape, layout in fastest.items())
        return ProductTimes(rows, tuple(sum(each.values()) for each in least), best)

    def seconds(self, rows: int) -> float:
        """One pass over `rows` rows, in the layouts that were fastest at the nearest measured number."""
        nearest = min(self._choices, key=lambda count: abs(count - rows))
        choices = self._choices[nearest]
        inputs = self._inputs(rows)
        started = self._clock()
        for layouts in self._layouts:
            shape = _shape(layouts)
            layouts[choices[shape]](inputs[shape[0]])
        return self._clock() - started

    def _turn(self, rows: int, layout: int) -> dict[Shape, float]:
        inputs = self._inputs(rows)
        spent: dict[Shape, float] = defaultdict(float)
        for layouts in self._layouts:
            shape = _shape(layouts)
            started = self._clock()
            layouts[layout](inputs[shape[0]])
            spent[shape] += self._clock() - started
        return spent

    def _inputs(self, rows: int) -> dict[int, torch.Tensor]:
        widths = {_shape(layouts)[0] for layouts in self._layouts}
        return {width: self._layouts[0][0].plain.new_ones((rows, width)) for width in widths}


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


def _layouts(matrix: torch.Tensor, packed: bool) -> list[Matrix]:
    """The matrix [in, out], [out, in] and packed."""
    layouts = [Matrix(matrix.contiguous()), Matrix(matrix.t().contiguous().t())]
    return [*layouts, Matrix.pack(layouts[1].plain)] if packed else layouts


def _shape(layouts: Sequence[Matrix]) -> Shape:
    inputs, outputs = layouts[0].plain.shape
    return inputs, outputs
