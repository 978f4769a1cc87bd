"""What is added to logits before the filters: logit_bias, presence and frequency penalties."""

from collections import Counter
from collections.abc import Mapping, Sequence
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
        own = [
            (row, token, before[token] + path.count(token))
            for row, path in enumerate(paths)
            for token in set(path)
        ]
        rows, tokens, times = torch.tensor(own, dtype=torch.int64, device=logits.device).reshape(-1, 3).T
        # Tokens of a path have a count of their own: taken from what stood there before the others' penalty.
        penalized = logits[rows, tokens] - self._penalty(times, logits)
        if before:
            seen = torch.tensor([*before.items()], dtype=torch.int64, device=logits.device)  # [tokens, 2]
            logits[:, seen[:, 0]] -= self._penalty(seen[:, 1], logits)
        if own:
            logits[rows, tokens] = penalized

    def _penalty(self, times: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """What is taken from tokens that occurred so often, [tokens]."""
        return self.frequency * times.to(like.dtype) + self.presence
