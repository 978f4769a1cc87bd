"""Quality of texts by themselves: repetition, and the distribution of their tokens."""

from collections import Counter
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

Tokens = Sequence[int]

LOOP_WINDOW = 8
LOOP_TIMES = 3


def until_end(tokens: Tokens, ends: Collection[int]) -> tuple[int, ...]:
    """The tokens up to and with the first of `ends`: what a generator that stops there gives."""
    first = next((place for place, token in enumerate(tokens) if token in ends), len(tokens))
    return tuple(tokens[: first + 1])


def distinct_n(tokens: Tokens, n: int) -> float:
    """Share of n-grams that are the first of their kind in the text; 1 for a text too short."""
    grams = ngrams(tokens, n)
    return len(set(grams)) / len(grams) if grams else 1.0


def has_loop(tokens: Tokens) -> bool:
    """Whether some run of `LOOP_WINDOW` tokens occurs at least `LOOP_TIMES` times."""
    return max(Counter(ngrams(tokens, LOOP_WINDOW)).values(), default=0) >= LOOP_TIMES


def ngrams(tokens: Tokens, n: int) -> list[tuple[int, ...]]:
    """All n-grams in order."""
    return [tuple(tokens[start : start + n]) for start in range(len(tokens) - n + 1)]


def count_matrix(texts: Sequence[Tokens], columns: Sequence[int]) -> NDArray[np.float64]:
    """How often each of `columns` occurs in each text, and all other tokens last: [texts, columns + 1]."""
    place = {token: column for column, token in enumerate(columns)}
    counts = np.zeros((len(texts), len(columns) + 1))
    for row, tokens in enumerate(texts):
        for token in tokens:
            counts[row, place.get(token, len(columns))] += 1
    return counts


def total_variation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """Total variation distance between two histograms."""
    return float(np.abs(first / first.sum() - second / second.sum()).sum() / 2)


def permutation_p(
    first: NDArray[np.float64], second: NDArray[np.float64], *, permutations: int = 2_000, seed: int = 0
) -> float:
    """p-value of the total variation distance between the token histograms of two groups of texts.

    Texts, not tokens, are exchanged between the groups, because the tokens of a text depend on each other.
    first, second: [texts, tokens] counts.
    """
    pooled = np.concatenate([first, second])
    total = pooled.sum(axis=0)
    observed = total_variation(first.sum(axis=0), second.sum(axis=0))
    generator = np.random.default_rng(seed)
    reached = 0
    for _ in range(permutations):
        group = pooled[generator.permutation(len(pooled))[: len(first)]].sum(axis=0)
        reached += total_variation(group, total - group) >= observed - 1e-12
    return (1 + reached) / (1 + permutations)
