"""What is added to logits before the filters: logit_bias, presence and frequency penalties."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, slots=True)
class LogitAdjustments:
    """OpenAI's: logit + bias - frequency * count - presence * (count > 0), counted over the completion."""

    presence: float = 0.0
    frequency: float = 0.0
    bias: Mapping[int, float] = field(default_factory=dict)

    @property
    def penalizes(self) -> bool:
        return self.presence != 0.0 or self.frequency != 0.0

    @property
    def active(self) -> bool:
        return self.penalizes or bool(self.bias)

    def apply(self, logits: torch.Tensor, completion: Sequence[int], paths: Sequence[Sequence[int]]) -> None:
        """Changes `logits` [branches, vocab] in place; branch i comes after `completion` and `paths[i]`.

        The tokens of a path count as those before it do: the second token of a block sees the first.
        """
        if self.bias:
            ids = torch.tensor(list(self.bias), dtype=torch.int64, device=logits.device)
            amounts = torch.tensor(list(self.bias.values()), dtype=logits.dtype, device=logits.device)
            logits[:, ids] += amounts
        if not self.penalizes:
            return
        before = Counter(completion)
        own = {
            (row, token): before[token] + path.count(token)
            for row, path in enumerate(paths)
            for token in set(path)
        }
        if own:
            # Tokens of a path have a count of their own, which counts from what stands there now.
            rows, tokens = torch.tensor(list(own), dtype=torch.int64, device=logits.device).T
            penalized = logits[rows, tokens] - self._penalty(own.values(), logits)
        if before:
            seen = torch.tensor(list(before), dtype=torch.int64, device=logits.device)
            logits[:, seen] -= self._penalty(before.values(), logits)
        if own:
            logits[rows, tokens] = penalized

    def _penalty(self, times: Iterable[int], like: torch.Tensor) -> torch.Tensor:
        """What is taken from tokens that occurred so often, [tokens]."""
        return (
            self.frequency * torch.tensor(list(times), dtype=like.dtype, device=like.device) + self.presence
        )
