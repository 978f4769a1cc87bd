"""Language models outside the engine: next-token distributions."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

_ROWS = 64  # of logits in double precision at once


class LanguageModel(Protocol):
    """What says how likely each token of a text was."""

    def logits(self, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
        """Logits from which each token of the completion was drawn, [tokens, vocab]."""
        ...


class CausalModel:
    """A causal language model on the CPU, or on a GPU if there is one; in fp32 if not said otherwise."""

    def __init__(self, model: str, dtype: str = "float32") -> None:
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        loaded = AutoModelForCausalLM.from_pretrained(model, dtype=dtype)
        self._model = loaded.eval().to(self._device)

    @torch.inference_mode()
    def logits(self, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
        """See `LanguageModel`."""
        ids = torch.tensor([[*prompt, *completion]], device=self._device)
        logits: torch.Tensor = self._model(input_ids=ids[:, :-1]).logits[0]  # [tokens - 1, vocab]
        return logits[len(prompt) - 1 :]


def log_likelihood(
    model: LanguageModel, prompt: Sequence[int], completion: Sequence[int]
) -> NDArray[np.float64]:
    """Natural log probability of each token of the completion, no filters, [tokens]."""
    logits = model.logits(prompt, completion)
    chosen = torch.tensor(list(completion), device=logits.device)[:, None]
    parts = [slice(first, first + _ROWS) for first in range(0, len(chosen), _ROWS)]
    found = [torch.log_softmax(logits[part].double(), dim=-1).gather(1, chosen[part])[:, 0] for part in parts]
    values: NDArray[np.float64] = torch.cat(found).cpu().numpy()
    return values
