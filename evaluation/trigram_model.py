"""A small language model of any tokenizer's tokens: counts of three, two and one tokens, mixed."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_WEIGHTS = (0.7, 0.25, 0.05)  # of three, two and one tokens


class TrigramModel:
    """Next-token probabilities from the tokens of texts."""

    def __init__(self, texts: Iterable[Sequence[int]]) -> None:
        self._counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for ids in texts:
            for place, token in enumerate(ids):
                for width in (2, 1, 0):
                    if place >= width:
                        self._counts[tuple(ids[place - width : place])][token] += 1
        # A table of all tokens would be read at each step: the likely ones are enough.
        self._counts[()] = Counter(dict(self._counts[()].most_common(200)))
        self._known: dict[tuple[int, ...], tuple[NDArray[np.int64], NDArray[np.float64]]] = {}

    def likeliest(self, before: Sequence[int], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The `count` most probable tokens after `before`, and their probabilities, which sum to 1."""
        key = (count, *before[-2:])
        if key not in self._known:
            self._known[key] = self._likeliest(before, count)
        return self._known[key]

    def _likeliest(self, before: Sequence[int], count: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        mixed: Counter[int] = Counter()
        for width, weight in zip((2, 1, 0), _WEIGHTS, strict=True):
            seen = self._counts.get(tuple(before[len(before) - width :])) if len(before) >= width else None
            if seen:
                total = seen.total()
                for token, number in seen.items():
                    mixed[token] += weight * number / total  # type: ignore[assignment]
        tokens, weights = zip(*mixed.most_common(count), strict=True)
        probabilities = np.array(weights, dtype=np.float64)
        return np.array(tokens, dtype=np.int64), probabilities / probabilities.sum()
