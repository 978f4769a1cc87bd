"""`python -m tests.harness.typical_lengths ANSWERS [COUNT] [TOKENS]`: how long marked texts must be.

Of the first COUNT of `tests.harness.marked_answers` with TOKENS tokens or more: at how many half of them are
found at 1e-1, 1e-2, ... under the right key, without a reader. It is what `detect_service/verdict.py` holds.
"""

import math
import sys
from pathlib import Path
from statistics import median_high

import numpy as np
from numpy.typing import NDArray

from tests.harness.marked_answers import WATERMARK, read_answers
from ttmark.shared.watermark.likelihood.evidence import LikelihoodTest, Sharp


def is_found(key: bytes, ids: NDArray[np.int64], rate: float) -> bool:
    """By 1 / E where that is enough; it is not below a p-value that is drawn for."""
    ways: tuple[Sharp, ...] = ("never", "where_it_matters")
    tests = (LikelihoodTest(WATERMARK, ids, rate=rate, sharp=way, secret=b"evaluation") for way in ways)
    return any(test.under([key]).log10_p <= math.log10(rate) for test in tests)


def least_tokens(prf_key: bytes, ids: tuple[int, ...], rate: float) -> int:
    """The beginning of an answer that is found, by halving; one more than its tokens if it is not."""
    low, high = 0, len(ids) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if is_found(prf_key, np.array(ids[:middle]), rate):
            high = middle
        else:
            low = middle
    return high


def main() -> None:
    file, *numbers = sys.argv[1:]
    count, tokens = map(int, [*numbers, *("128", "200")[len(numbers) :]])
    chosen = [one for one in read_answers(Path(file)) if len(one.ids) >= tokens][:count]
    for decade in range(1, 100):
        needed = [least_tokens(one.prf_key, one.ids[:tokens], 10.0**-decade) for one in chosen]
        half = median_high(needed)
        if half > tokens:
            break
        print(f"1e-{decade}: {half} tokens, {len(chosen)} answers", flush=True)


if __name__ == "__main__":
    main()
