"""Iso-entropy: the temperature at which a small model is as hard to watermark as the paper's.

Detectability is a function of entropy. At the temperature where a model's single-token SynthID-Text has the
paper's median p-value (Table 1), the gains of blocks can be compared with the paper's.
"""

import math
from collections.abc import Callable

from ttmark.evaluation.direct_and_aligned import detect_texts
from ttmark.evaluation.experiment_cells import Cell, SamplingSetting
from ttmark.evaluation.paper import DIRECT
from ttmark.evaluation.run_folder import Run

LENGTH = 200
TARGET = math.log10(DIRECT["synthid", 1, LENGTH].median_p)
START, LOWEST, HIGHEST = 0.8, 0.2, 2.0
STRIDE = 0.2
"""Step in temperature until the target lies between two values."""
TOLERANCE = 0.3
"""In log10 p, below the error of a median over 100 texts."""


def calibrate(run: Run, texts: int) -> SamplingSetting:
    """The paper's default filters with the temperature, to 0.01, that gives its median p-value."""

    def setting(temperature: float) -> SamplingSetting:
        return SamplingSetting(50, 0.95, temperature)

    def median_log10_p(temperature: float) -> float:
        cell = Cell("synthid", 1, setting(temperature), LENGTH)
        return detect_texts(run, cell, run.texts(cell, texts), LENGTH).median_log10_p().estimate

    return setting(solve_falling(median_log10_p, TARGET))


def solve_falling(function: Callable[[float], float], target: float) -> float:
    """Where a falling function, known with noise, meets `target` between LOWEST and HIGHEST, to 0.01.

    Walks from START by STRIDE until the target is passed, then takes false positions; an end is returned
    where the function does not reach the target.
    """
    near = (START, function(START))
    stride = STRIDE if near[1] > target else -STRIDE
    while True:
        temperature = round(min(max(near[0] + stride, LOWEST), HIGHEST), 2)
        if temperature == near[0]:
            return temperature
        far = (temperature, function(temperature))
        if (far[1] > target) != (near[1] > target):
            break
        near = far
    return _between(function, target, near, far)


def _between(
    function: Callable[[float], float], target: float, near: tuple[float, float], far: tuple[float, float]
) -> float:
    """The crossing between two points (x, value) on either side of the target."""
    while True:
        best = min(near, far, key=lambda point: abs(point[1] - target))
        share = min(max((near[1] - target) / (near[1] - far[1]), 0.15), 0.85)
        middle = round(near[0] + share * (far[0] - near[0]), 2)
        if abs(best[1] - target) <= TOLERANCE or middle in (near[0], far[0]):
            return best[0]
        point = (middle, function(middle))
        if (point[1] > target) == (near[1] > target):
            near = point
        else:
            far = point
