"""Names for the passages of a document, which stay the same when the rest of the document changes.

Hashes of shingles are winnowed (Schleimer, Wilkerson and Aiken 2003): of every run of shingles the least hash
is chosen, so what is chosen within a passage does not depend on what stands around it. A passage's name is
the pair of two choices that follow each other. One pair covers a few words; a passage of some sentences has
a row of them.
"""

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]

_LETTERS_IN_A_SHINGLE = 8
_LETTERS_IN_A_RUN = 24
_IDS_IN_A_SHINGLE = 2
_IDS_IN_A_RUN = 8
_DENSE_SCRIPTS = (
    0x2E80  # from here on a character is about as much as three letters: Chinese, Japanese, Korean
)
_MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # finaliser of SplitMix64


def passages_of_text(letters: str, seed: int) -> Hashes:
    """Names of the passages of a text, in order.

    Args:
        letters: the text as `letters_of` folds it; any character but lone surrogates.
        seed: 64 secret bits; without them nobody can choose words that are never, or always, chosen.
    """
    points = np.frombuffer(letters.encode("utf-32-le"), dtype=np.uint32)
    items = np.repeat(points, np.where(points < _DENSE_SCRIPTS, 1, 3)).astype(np.uint64)
    return _winnowed(items, _LETTERS_IN_A_SHINGLE, _LETTERS_IN_A_RUN, seed)


def passages_of_ids(token_ids: NDArray[np.int64], seed: int) -> Hashes:
    """Names of the passages of a document of token ids [tokens], in order."""
    return _winnowed(token_ids.astype(np.uint64), _IDS_IN_A_SHINGLE, _IDS_IN_A_RUN, seed)


def _winnowed(items: Hashes, shingle: int, run: int, seed: int) -> Hashes:
    hashes = _shingles(items, min(shingle, len(items)), seed)
    if len(hashes) == 0:
        return hashes
    least = _least_of_runs(hashes, min(run, len(hashes)))
    chosen = least[np.flatnonzero(np.diff(least, prepend=~least[:1]))]
    # A document with a single choice is one passage, named by its choice alone.
    return mixed(chosen[:-1] * np.uint64(_MIX[1]) + chosen[1:]) if len(chosen) > 1 else chosen


def _shingles(items: Hashes, width: int, seed: int) -> Hashes:
    """Keyed hashes of each run of `width` items, [items - width + 1]."""
    if not width:
        return np.zeros(0, dtype=np.uint64)
    keyed = mixed(items ^ np.uint64(seed))
    values = np.zeros(len(items) - width + 1, dtype=np.uint64)
    for offset in range(width):
        values *= np.uint64(_MIX[0])
        values += keyed[offset : offset + len(values)]
    return mixed(values)


def _least_of_runs(hashes: Hashes, width: int) -> Hashes:
    """The least of each run of `width` hashes, [hashes - width + 1], in log2(width) steps."""
    least, covered = hashes, 1
    while covered < width:
        step = min(covered, width - covered)
        least = np.minimum(least[: len(least) - step], least[step:])
        covered += step
    return least


def mixed(values: Hashes) -> Hashes:
    """A permutation of 64 bits in which every bit depends on all."""
    result = values + np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in zip((30, 27), _MIX, strict=True):
        result ^= result >> np.uint64(shift)
        result *= np.uint64(factor)
    result ^= result >> np.uint64(31)
    return result
