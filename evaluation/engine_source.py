"""Texts by the project's engine, batched, each with its own key and seed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.language_model import CausalModel
from ttmark.evaluation.run_folder import Completion, OnText, OnTokens
from ttmark.evaluation.text_files import MAX_TOKENS, read_prompts
from ttmark.gen_service.engine import (
    Delta,
    Engine,
    EngineSettings,
    GenerationRequest,
    Marking,
    SamplingParams,
)
from ttmark.shared.tokenization import TextTokenizer


@dataclass(eq=False)
class EngineSource:
    """Texts by the generation engine; the model is loaded when the first text is asked for."""

    model: str
    prompts_path: Path
    settings: EngineSettings
    _engine: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The started engine."""
        if self._engine is None:
            self._engine = Engine.load(self.model, self.settings)
            self._engine.start()
        return self._engine

    @cached_property
    def language_model(self) -> CausalModel:
        """The same model outside the engine."""
        return CausalModel(self.model)

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
        """See `TextSource`."""
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
        """Stops the engine."""
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
        on_text(Completion(index, tuple(tokens)))

    await asyncio.gather(*map(one, indices))
