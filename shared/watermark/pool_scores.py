"""Scores of the same blocks under many keys: the PRF runs over keys and blocks at once.

SipHash begins with the key, so nothing of a message can be absorbed once for all keys. What is saved is the
cost of a call, which for the few hundred blocks of a usual text is most of it.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.pauses import STEPS
from ttmark.shared.watermark.prf import key_lanes
from ttmark.shared.watermark.redrawn import RowKeys
from ttmark.shared.watermark.watermark import Watermark


def scores_under_each(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    contexts: NDArray[np.int64],
    blocks: NDArray[np.int64],
    occurrences: NDArray[np.int64] | None = None,
    *,
    rows: int = STEPS,
    row_keys: RowKeys | None = None,
) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """`Watermark.score` of the blocks [N] under run after run of the keys: which keys, scores [run, N].

    A run has as many keys as make about `rows` scores, and at least one: memory does not grow with the keys.
    Those of `row_keys` have keys of their own, whatever the pool's are.
    """
    count = len(contexts)
    run = max(1, min(len(prf_keys), rows // max(1, count)))
    lanes = np.array([key_lanes(prf_key) for prf_key in prf_keys]).reshape(-1, 2)
    if run > 1:
        # By columns, as the PRF reads them.
        contexts, blocks = np.tile(contexts.T, run).T, np.tile(blocks.T, run).T
        occurrences = None if occurrences is None else np.tile(occurrences, run)
    for first in range(0, len(prf_keys), run):
        keys = slice(first, min(first + run, len(prf_keys)))
        size = keys.stop - first
        own = slice(size * count)
        of_each = np.repeat(lanes[keys], count, axis=0)
        if row_keys is not None:
            row_keys.put_into(of_each.reshape(size, count, 2))
        again = None if occurrences is None else occurrences[own]
        yield keys, watermark.score(of_each, contexts[own], blocks[own], again).reshape(size, count)
