"""Language models outside the engine: next-token distributions, and texts written the slow, obvious way."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from ttmark.evaluation.experiment_cells import Cell, SamplingSetting
from ttmark.gen_service.decoding.filtered_tokens import FilterParams, Support
from ttmark.gen_service.decoding.filters import filter_rows
from ttmark.shared.watermark import key_lanes

_ROWS = 64  # of logits in double precision at once


class BranchModel(Protocol):
    """What says how likely the next token is."""

    def branch_logits(self, prefix: Sequence[int], paths: Sequence[Sequence[int]]) -> torch.Tensor:
        """Logits after `prefix` and each path, all of one length, [paths, vocab]."""
        ...


class LanguageModel(BranchModel, Protocol):
    """The same, and of whole texts at once."""

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

    @torch.inference_mode()
    def branch_logits(self, prefix: Sequence[int], paths: Sequence[Sequence[int]]) -> torch.Tensor:
        """See `BranchModel`."""
        ids = torch.tensor([list(prefix)], device=self._device)
        output = self._model(input_ids=ids, use_cache=True)
        if paths[0]:
            cache = output.past_key_values
            cache.batch_repeat_interleave(len(paths))
            branches = torch.tensor([list(path) for path in paths], device=self._device)  # [paths, tokens]
            output = self._model(input_ids=branches, past_key_values=cache)
        logits: torch.Tensor = output.logits[:, -1]
        return logits


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


def supports(logits: torch.Tensor, setting: SamplingSetting) -> list[Support]:
    """What the setting's filters leave of each row."""
    params = FilterParams(setting.temperature, setting.top_k, setting.top_p)
    found = filter_rows(logits, [params] * len(logits))
    return [support.whole() for support in found if support is not None]


class Level(NamedTuple):
    """The joint distribution of the next tokens: paths [N][tokens] and their probabilities [N]."""

    paths: list[list[int]]
    probs: NDArray[np.float64]


def block_levels(
    model: BranchModel, setting: SamplingSetting, prompt: Sequence[int], before: Sequence[int], tokens: int
) -> Iterator[Level]:
    """The joint distributions of the next 1, 2, ... `tokens` tokens after `prompt` and `before`."""
    level = Level([[]], np.ones(1))
    for _ in range(tokens):
        logits = model.branch_logits([*prompt, *before], level.paths)
        branches = list(zip(level.paths, level.probs, supports(logits, setting), strict=True))
        level = Level(
            [[*path, token] for path, _, support in branches for token in support.ids.tolist()],
            np.concatenate([p * support.probs for _, p, support in branches]),
        )
        yield level


def write_text(
    model: BranchModel, cell: Cell, key: bytes, prompt: Sequence[int], draws: np.random.Generator
) -> tuple[int, ...]:
    """One text of a cell, block by block from the (watermarked) joint distribution (Algorithm 1)."""
    watermark = cell.watermark() if cell.scheme else None
    tracker = watermark.tracker() if watermark else None
    lanes = key_lanes(key)[None]
    tokens: list[int] = []
    while len(tokens) < cell.tokens:
        *_, (paths, probs) = block_levels(model, cell.setting, prompt, tokens, cell.block_size)
        context = tracker.next_context(tokens) if tracker else None
        if watermark and context is not None:
            blocks, offsets = np.array(paths), np.array([0, len(paths)])
            probs = watermark.reweight(lanes, np.array([context]), blocks, probs, offsets)
        tokens += paths[draws.choice(len(paths), p=probs / probs.sum())]
    return tuple(tokens[: cell.tokens])
