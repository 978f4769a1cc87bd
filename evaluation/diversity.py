"""How many completions of one prompt differ when each is marked with one key of a pool.

Neither the pool nor the requests have to be played through. Completions under one key are counted, which says
how many of any number of them differ; how many requests meet the same key is binomial; and completions under
different keys coincide as often as without a watermark: over all keys the distribution is the model's.
"""

import math

import numpy as np
from numpy.typing import NDArray

Sizes = NDArray[np.int64]
"""Of some completions: how many there are of each distinct one."""


def group_sizes(texts: NDArray[np.int64]) -> Sizes:
    """Completions [n, tokens], counted by their tokens."""
    sizes: Sizes = np.unique(texts, axis=0, return_counts=True)[1]
    return sizes


def coinciding_pairs(sizes: Sizes) -> float:
    """Share of the pairs of completions that are equal."""
    count = sizes.sum()
    return float((sizes * (sizes - 1)).sum() / (count * (count - 1)))


def distinct_of(sizes: Sizes, most: int) -> NDArray[np.float64]:
    """Expected number of distinct ones among 0, 1, ... `most` completions [most + 1].

    Up to as many as were counted it is the mean over all ways to choose from them. Beyond, it is a lower
    bound: no fewer than among those, and no fewer than if every equal pair took one away, with one equal pair
    more than was seen, because no pair in a hundred does not mean none in thousands.
    """
    count = int(sizes.sum())
    draws = np.arange(most + 1)
    inside = [
        sum(1 - math.comb(count - size, n) / math.comb(count, n) for size in sizes.tolist())
        for n in range(min(most, count) + 1)
    ]
    beyond = draws[len(inside) :]
    pairs = count * (count - 1) / 2
    apart = beyond - beyond * (beyond - 1) / 2 * (coinciding_pairs(sizes) * pairs + 1) / (pairs + 1)
    return np.concatenate([inside, np.maximum(inside[-1], apart)])


def distinct_share(same_key: Sizes, unmarked: Sizes, requests: int, pool: int) -> float:
    """Expected share of distinct ones among completions of one prompt; a lower bound.

    Each of the `requests` draws one of `pool` keys. `same_key` counts completions under one key, `unmarked`
    those without a watermark; every pair that coincides under different keys takes one away.
    """
    numbers = np.arange(requests + 1)
    chances = [
        math.comb(requests, n) * (pool - 1) ** (requests - n) / pool**requests for n in numbers.tolist()
    ]
    within = pool * float(np.dot(chances, distinct_of(same_key, requests)))
    across = (1 - unmarked_share(unmarked, requests)) * requests * (1 - 1 / pool)
    return max(1.0, within - across) / requests


def unmarked_share(unmarked: Sizes, requests: int) -> float:
    """The same without a watermark: every equal pair takes one away, which is exact where few are equal."""
    return 1 - (requests - 1) / 2 * coinciding_pairs(unmarked)
