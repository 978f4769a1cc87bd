"""What changes logits before the filters: bias, penalties, and tokens that may not come next."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch


class Bans:
    """What min_tokens and bad_words of a request forbid, as transformers' processors and vLLM do.

    Args:
        min_tokens: tokens of the completion before any of `ends` may come.
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


class TokenCounts:
    """The distinct tokens of a prompt and its completion, and how often the completion has each.

    The prompt is looked through once; the completion adds its tokens one by one.
    """

    def __init__(self, prompt: Iterable[int], completion: Iterable[int] = ()) -> None:
        self._places = {token: place for place, token in enumerate(dict.fromkeys(prompt))}
        self._ids = np.fromiter(self._places, dtype=np.int64)
        self._times = np.zeros(len(self._ids))
        for token in completion:
            self.add(token)

    def add(self, token: int) -> None:
        place = self._places.setdefault(token, len(self._places))
        if place == len(self._ids):
            more = place + 64
            self._ids = np.pad(self._ids, (0, more))
            self._times = np.pad(self._times, (0, more))
        self._ids[place] = token
        self._times[place] += 1

    def times(self, token: int) -> float:
        place = self._places.get(token)
        return 0.0 if place is None else float(self._times[place])

    def columns(self, like: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """All tokens [known], and how often the completion has each [known] in the type of `like`."""
        known = len(self._places)
        ids, times = (torch.from_numpy(values[:known]) for values in (self._ids, self._times))
        return ids.to(like.device), times.to(like.device, like.dtype)


@dataclass(frozen=True, slots=True)
class LogitAdjustments:
    """Bias and penalties, in the order that vLLM and transformers have them in.

    First logit + bias. Then the repetition penalty, once on every token of prompt and completion: a logit
    above 0 is divided by it, any other multiplied. Then OpenAI's: - frequency * count - presence *
    (count > 0), counted over the completion.
    """

    presence: float = 0.0
    frequency: float = 0.0
    bias: Mapping[int, float] = field(default_factory=dict)
    repetition: float = 1.0

    @property
    def penalizes(self) -> bool:
        return self.presence != 0.0 or self.frequency != 0.0 or self.repetition != 1.0

    @property
    def active(self) -> bool:
        return self.penalizes or bool(self.bias)

    def apply(self, logits: torch.Tensor, before: TokenCounts, paths: Sequence[Sequence[int]]) -> None:
        """Changes `logits` [branches, vocab] in place; branch i comes after `before` and `paths[i]`.

        The tokens of a path count as those of the completion do: the second token of a block sees the first.
        """
        if self.bias:
            ids = torch.tensor(list(self.bias), dtype=torch.int64, device=logits.device)
            amounts = torch.tensor(list(self.bias.values()), dtype=logits.dtype, device=logits.device)
            logits[:, ids] += amounts
        if not self.penalizes:
            return
        own = {
            (row, token): before.times(token) + path.count(token)
            for row, path in enumerate(paths)
            for token in set(path)
        }
        if own:
            # Tokens of a path have a count of their own, which counts from what stands there now.
            rows, tokens = torch.tensor(list(own), dtype=torch.int64, device=logits.device).T
            times = torch.tensor(list(own.values()), dtype=logits.dtype, device=logits.device)
            penalized = self._penalized(logits[rows, tokens], times)
        seen, times = before.columns(logits)
        logits.index_copy_(1, seen, self._penalized(logits.index_select(1, seen), times))
        if own:
            logits[rows, tokens] = penalized

    def _penalized(self, logits: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """Logits [..., tokens] of tokens that were seen, and that the completion has so often."""
        if self.repetition != 1.0:
            logits = torch.where(logits > 0, logits / self.repetition, logits * self.repetition)
        return logits - (self.frequency * times + self.presence * times.clamp(max=1))
