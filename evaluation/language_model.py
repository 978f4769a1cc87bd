"""The model itself, outside the engine: next-token distributions of given texts."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from evaluation.settings import SamplingSetting
from gen_service.decoding.filters import FilterParams, filter_rows
from gen_service.decoding.penalties import LogitAdjustments
from gen_service.decoding.support import Support


class LanguageModel:
    """A causal language model in fp32 on the CPU, or on a GPU if there is one."""

    def __init__(self, model: str) -> None:
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        loaded = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
        self._model = loaded.eval().to(self._device)

    @torch.inference_mode()
    def logits(self, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
        """Logits from which each token of the completion was drawn, [tokens, vocab]."""
        ids = torch.tensor([[*prompt, *completion]], device=self._device)
        logits: torch.Tensor = self._model(input_ids=ids[:, :-1]).logits[0]  # [tokens - 1, vocab]
        return logits[len(prompt) - 1 :]

    def log_likelihood(self, prompt: Sequence[int], completion: Sequence[int]) -> NDArray[np.float64]:
        """Natural log probability of each token of the completion, no filters, [tokens]."""
        logits = self.logits(prompt, completion).double()
        chosen = torch.tensor(list(completion), device=self._device)[:, None]
        taken = torch.log_softmax(logits, dim=-1).gather(1, chosen)[:, 0]
        values: NDArray[np.float64] = taken.cpu().numpy()
        return values

    @torch.inference_mode()
    def branch_logits(self, prefix: Sequence[int], paths: Sequence[Sequence[int]]) -> torch.Tensor:
        """Logits after `prefix` and each path, all of one length, [paths, vocab]."""
        ids = torch.tensor([list(prefix)], device=self._device)
        output = self._model(input_ids=ids, use_cache=True)
        if paths[0]:
            cache = output.past_key_values
            cache.batch_repeat_interleave(len(paths))
            branches = torch.tensor([list(path) for path in paths], device=self._device)  # [paths, tokens]
            output = self._model(input_ids=branches, past_key_values=cache)
        logits: torch.Tensor = output.logits[:, -1]
        return logits


def penalize(logits: torch.Tensor, setting: SamplingSetting, before: Sequence[Sequence[int]]) -> torch.Tensor:
    """Logits with the setting's penalty on the tokens before each row."""
    adjustments = LogitAdjustments(frequency=setting.frequency_penalty)
    if adjustments.penalizes:
        logits = logits.clone()
        for row, tokens in enumerate(before):
            adjustments.apply(logits[row : row + 1], tokens, [()])
    return logits


def supports(logits: torch.Tensor, setting: SamplingSetting) -> list[Support]:
    """What the setting's filters leave of each row."""
    params = FilterParams(setting.temperature, setting.top_k, setting.top_p)
    found = filter_rows(logits, [params] * len(logits))
    return [support for support in found if support is not None]
