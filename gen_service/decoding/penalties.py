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
        for row, path in enumerate(paths):
            counts = before + Counter(path) if path else before
            if counts:
                ids = torch.tensor(list(counts), dtype=torch.int64, device=logits.device)
                times = torch.tensor(list(counts.values()), dtype=logits.dtype, device=logits.device)
                logits[row, ids] -= self.frequency * times + self.presence
