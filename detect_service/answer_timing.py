"""Answers to callers who see verdicts alone leave at times that do not tell what was done for them.

Whether a p-value was drawn for, or a text was read along, says how near it came to a finding.
"""

import asyncio
import math
import random
import time
from collections.abc import Iterable

# Seconds that a request takes at most, and drawing for a document, on a core that has other work: by its
# tokens up to 1,000, from where on there are fewer draws, and by all of them.
_REQUEST, _DOCUMENT, _TOKEN, _DRAWN_TOKENS, _LATER_TOKEN = 0.05, 0.03, 1.8e-4, 1_000, 1.5e-6

_CHANCE, _LATE_PART = random.SystemRandom(), 8


def step_seconds(tokens: Iterable[int], reading_seconds: float = 0.0) -> float:
    """Time that covers what may be done for documents of so many tokens, or may not."""
    drawing = sum(_DOCUMENT + _TOKEN * min(one, _DRAWN_TOKENS) + _LATER_TOKEN * one for one in tokens)
    return _REQUEST + drawing + reading_seconds


def rest_of_step(taken: float, step: float) -> float:
    """Seconds until an answer that took so many may leave: at the next multiple of a step."""
    return math.ceil(taken / step) * step - taken if step > 0 else 0.0


async def leave_evenly(began: float, step: float) -> None:
    """Returns at the next multiple of a step after `began` (`time.perf_counter`), and a little later.

    What was done leaves traces of a few tenths of a millisecond even after the wait; chance hides them.
    """
    late = _CHANCE.uniform(0.0, step / _LATE_PART)
    await asyncio.sleep(rest_of_step(time.perf_counter() - began, step) + late)
