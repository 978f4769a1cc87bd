"""Tokens that may not come next: ends of text that would come too early, and those that end a bad word."""

from collections import defaultdict
from collections.abc import Collection, Sequence

import torch


class Bans:
    """What min_tokens and bad_words of a request forbid, as transformers' processors and vLLM do.

    Args:
        min_tokens: tokens of the completion before any of `ends` may come.
        ends: tokens that end the text.
        bad_words: token sequences that the completion may not have; the prompt does not count.
    """

    def __init__(
        self, min_tokens: int, ends: Collection[int], bad_words: Collection[tuple[int, ...]]
    ) -> None:
        self._min_tokens = min_tokens
        self._ends = sorted(ends)
        self._last: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for *before, last in bad_words:
            self._last[tuple(before)].append(last)
        self._lengths = sorted({len(before) for before in self._last})

    def active(self, completion_length: int) -> bool:
        """Whether anything may be forbidden after so many tokens."""
        return completion_length < self._min_tokens or bool(self._last)

    def apply(self, logits: torch.Tensor, completion: Sequence[int], paths: Sequence[Sequence[int]]) -> None:
        """Sets `logits` [branches, vocab] of what is forbidden to -inf; branch i follows the completion and
        `paths[i]`."""
        rows: list[int] = []
        tokens: list[int] = []
        tail = list(completion[max(len(completion) - self._lengths[-1], 0) :]) if self._lengths else []
        for row, path in enumerate(paths):
            forbidden = self._forbidden([*tail, *path], len(completion) + len(path))
            rows += [row] * len(forbidden)
            tokens += forbidden
        logits[rows, tokens] = -torch.inf

    def _forbidden(self, before: list[int], length: int) -> list[int]:
        """After a completion of `length` tokens that ends in `before`."""
        found = list(self._ends) if length < self._min_tokens else []
        for size in self._lengths:
            if size <= len(before):
                found += self._last.get(tuple(before[len(before) - size :]), ())
        return found
