"""Texts of other systems by transformers' `generate`, in batches; each text has a key of its own."""

import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from transformers import (
    AutoModelForCausalLM,
    GenerationConfig,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from ttmark.evaluation.experiment_cells import Cell, SamplingSetting, sampling_seed
from ttmark.evaluation.peers.systems import SYSTEMS, Row
from ttmark.evaluation.run_folder import Completion, OnText
from ttmark.evaluation.text_sources import EngineSource

BATCH = 48


class Rows:
    """A logits processor that gives each text of a batch to a processor of its own."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = rows

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Scores [texts, vocab]."""
        parts = [row(input_ids[[at]], scores[[at]]) for at, row in enumerate(self._rows)]
        return torch.cat(parts)


class PeerSource:
    """The model of an engine in transformers; a cell's scheme is the name of a system, None: no watermark.

    The watermark comes after temperature, top-k and top-p, where transformers itself has it. A seed is that
    of the first text of a batch, so that texts depend on which were asked for together.
    """

    def __init__(self, source: EngineSource) -> None:
        self._source = source

    @cached_property
    def model(self) -> Any:
        """As transformers loads it."""
        if isinstance(self._source.settings.threads, int):
            torch.set_num_threads(self._source.settings.threads)
        dtype = self._source.settings.dtype
        return AutoModelForCausalLM.from_pretrained(self._source.model, dtype=dtype).eval()

    @property
    def vocabulary(self) -> int:
        """Tokens that the model scores."""
        size: int = self.model.config.get_text_config().vocab_size
        return size

    def generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        """See `TextSource`."""
        for batch in batches(indices):
            started = time.perf_counter()
            completions = self._completions(cell, batch, seed)
            seconds = (time.perf_counter() - started) / len(batch)
            for index, tokens in zip(batch, completions, strict=True):
                rows = len(self._prompt(cell, index)) + cell.tokens
                on_text(Completion(index, tuple(tokens), 0, seconds, rows))

    def _prompt(self, cell: Cell, index: int) -> tuple[int, ...]:
        return cell.prompt_ids(index, self._source.prompts)

    @torch.inference_mode()
    def _completions(self, cell: Cell, indices: Sequence[int], seed: int) -> list[list[int]]:
        prompts, mask = padded([self._prompt(cell, index) for index in indices])
        length = prompts.shape[1]
        processors = _filters(cell.setting)
        if cell.scheme is not None:
            system = SYSTEMS[cell.scheme]
            keys = [cell.key(seed, index) for index in indices]
            processors.append(Rows([system.row(key, self.vocabulary, length) for key in keys]))
        torch.manual_seed(sampling_seed(seed, cell.name, indices[0]))
        made = self.model.generate(
            prompts,
            attention_mask=mask,
            generation_config=_config(cell.tokens),
            logits_processor=processors,
        )
        completions: list[list[int]] = made[:, length:].tolist()
        return completions


def batches(indices: Sequence[int]) -> Iterator[list[int]]:
    """At most `BATCH` texts each."""
    for start in range(0, len(indices), BATCH):
        yield list(indices[start : start + BATCH])


def padded(prompts: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Prompts with zeros before them and their attention mask, both [prompts, longest]."""
    longest = max(map(len, prompts))
    tokens = torch.tensor([[0] * (longest - len(prompt)) + list(prompt) for prompt in prompts])
    mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    return tokens, mask


def _filters(setting: SamplingSetting) -> list[Any]:
    """Those of transformers, in its order.

    They are named here because `generate` would put further processors before its own filters, while its own
    watermarks come after them.
    """
    filters = [TemperatureLogitsWarper(setting.temperature)] if setting.temperature != 1.0 else []
    filters += [TopKLogitsWarper(setting.top_k)] if setting.top_k else []
    return filters + ([TopPLogitsWarper(setting.top_p)] if setting.top_p < 1.0 else [])


def _config(tokens: int) -> GenerationConfig:
    """Sampling from what the processors leave; the end of a text is a token like others."""
    return GenerationConfig(
        max_new_tokens=tokens,
        min_new_tokens=tokens,
        do_sample=True,
        top_k=0,
        top_p=1.0,
        temperature=1.0,
        repetition_penalty=1.0,  # what is not named is taken from the model's own configuration
        eos_token_id=None,
        pad_token_id=0,
    )
