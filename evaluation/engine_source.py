"""Texts by the project's engine, batched, each with its own key and seed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import AutoModelForCausalLM

from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.run_folder import GeneratedText, OnText, OnTokens
from ttmark.evaluation.text_files import MAX_TOKENS, read_prompts
from ttmark.gen_service.decoding.request import Delta, GenerationRequest, Marking, SamplingParams
from ttmark.gen_service.engine.loop.engine import Engine
from ttmark.gen_service.engine.settings import EngineSettings
from ttmark.shared.tokenization import TextTokenizer

_ROWS = 64  # of logits in double precision at once


class LanguageModel(Protocol):
    """What says how likely each token of a text was."""

    def logits(self, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
        """Logits from which each token of the completion was drawn, [tokens, vocab]."""
        ...


class CausalModel:
    """A causal language model on the CPU, or on a GPU if there is one.

    Args:
        dtype: of torch; "auto": as the model is stored.
    """

    def __init__(self, model: str, dtype: str = "float32") -> None:
        self._device = "cuda" if torch.cuda.is_available() else "cpu"
        loaded = AutoModelForCausalLM.from_pretrained(model, dtype=dtype)
        self._model = loaded.eval().to(self._device)

    @torch.inference_mode()
    def logits(self, prompt: Sequence[int], completion: Sequence[int]) -> torch.Tensor:
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


@dataclass(eq=False)
class EngineSource:
    """Texts by the generation engine; the model is loaded when the first text is asked for."""

    model: str
    prompts_path: Path
    settings: EngineSettings
    _engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            self._engine = Engine.load(self.model, self.settings)
            self._engine.start()
        return self._engine

    @cached_property
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer; of a folder it is read without the model."""
        return TextTokenizer.load(self.model) if Path(self.model).is_dir() else self.engine.tokenizer

    @cached_property
    def prompts(self) -> list[tuple[int, ...]]:
        """As token ids; text i continues prompt i, counted round."""
        return read_prompts(self.prompts_path, self.tokenizer, MAX_TOKENS)

    def generate(
        self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText, on_tokens: OnTokens
    ) -> None:
        asyncio.run(self._generate(cell, indices, seed, on_text, on_tokens))

    def request(self, cell: Cell, index: int, seed: int) -> GenerationRequest:
        """What text number `index` of a cell is asked for with; an end of text is a token like others."""
        marking = None
        if cell.scheme:
            marking = Marking("evaluation", 1, "evaluation", cell.watermark(), cell.key(seed, index))
        prompt_ids = self.prompts[index % len(self.prompts)]
        text_seed = sampling_seed(seed, cell.name, index)
        return completion_request(cell, index, prompt_ids, text_seed, marking, ignore_eos=True)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.stop(drain_seconds=0)
            self._engine = None

    async def _generate(
        self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText, on_tokens: OnTokens
    ) -> None:
        engine = self.engine

        async def request(index: int) -> GenerationRequest:
            return self.request(cell, index, seed)

        slots = asyncio.Semaphore(self.settings.max_sequences)
        await complete(engine.generate, request, indices, slots, on_text, on_tokens)


def completion_request(
    cell: Cell,
    index: int,
    prompt_ids: tuple[int, ...],
    seed: int,
    marking: Marking | None,
    *,
    ignore_eos: bool,
) -> GenerationRequest:
    """What an engine is asked for text number `index` of a cell."""
    return GenerationRequest(
        request_id=f"{cell.name}-{index}",
        prompt_ids=prompt_ids,
        sampling=SamplingParams(
            max_tokens=cell.tokens,
            temperature=cell.setting.temperature,
            top_k=cell.setting.top_k,
            top_p=cell.setting.top_p,
            repetition_penalty=cell.setting.repetition_penalty,
            seed=seed,
            ignore_eos=ignore_eos,
        ),
        marking=marking,
        unmarked_reason=None if marking else "evaluation",
    )


async def complete(
    generate: Callable[[GenerationRequest], AsyncIterator[Delta]],
    request: Callable[[int], Awaitable[GenerationRequest]],
    indices: Sequence[int],
    slots: asyncio.Semaphore,
    on_text: OnText,
    on_tokens: OnTokens,
) -> None:
    """Has an engine write texts beside each other."""

    async def one(index: int) -> None:
        tokens: list[int] = []
        async with slots:
            async for delta in generate(await request(index)):
                tokens += delta.token_ids
                on_tokens(len(delta.token_ids))
        on_text(GeneratedText(index, tuple(tokens)))

    await asyncio.gather(*map(one, indices))
