"""Iso-entropy: the temperature at which a small model is as hard to watermark as the paper's.

Detectability is a function of entropy. At the temperature where a model's single-token SynthID-Text has the
paper's median p-value (Table 1), the gains of blocks can be compared with the paper's.
"""

import math
from collections.abc import Callable

from evaluation.cells import Cell
from evaluation.detection import detect_texts
from evaluation.paper import DIRECT
from evaluation.run import Run
from evaluation.settings import SamplingSetting

LENGTH = 200
TARGET = math.log10(DIRECT["synthid", 1, LENGTH].median_p)
LOWEST, HIGHEST = 0.3, 2.0
STEPS = 6


def calibrate(run: Run, texts: int) -> SamplingSetting:
    """The paper's default setting with the temperature, to 0.01, that gives its median p-value."""

    def median_log10_p(temperature: float) -> float:
        cell = Cell("synthid", 1, SamplingSetting(50, 0.95, temperature), LENGTH)
        return detect_texts(run, cell, run.texts(cell, texts), LENGTH).median_log10_p().estimate

    return SamplingSetting(50, 0.95, solve_falling(median_log10_p, TARGET, LOWEST, HIGHEST, STEPS))


def solve_falling(
    function: Callable[[float], float], target: float, low: float, high: float, steps: int
) -> float:
    """Where a falling function, known with noise, meets `target`: false position with a guard, to 0.01.

    `function` is asked at `low` and `high` and `steps` times between; an end is returned if it does not reach
    the target inside.
    """
    at_low, at_high = function(low), function(high)
    if at_low <= target:
        return low
    if at_high >= target:
        return high
    for _ in range(steps):
        share = (at_low - target) / (at_low - at_high)
        middle = round(low + min(max(share, 0.15), 0.85) * (high - low), 2)
        if middle in (low, high):
            break
        value = function(middle)
        if value > target:
            low, at_low = middle, value
        else:
            high, at_high = middle, value
    return low if abs(at_low - target) < abs(at_high - target) else high
