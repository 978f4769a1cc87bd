"""Texts by the project's engine, batched, each with its own key and seed."""

import asyncio
import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.language_model import CausalModel
from ttmark.evaluation.run_folder import Completion, OnText
from ttmark.evaluation.text_files import MAX_TOKENS, read_human_texts, read_prompts
from ttmark.gen_service.demo_model import HUMAN_TEXTS_PATH
from ttmark.gen_service.engine import Engine, EngineSettings, GenerationRequest, Marking, SamplingParams
from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark import Watermark


class EngineSource:
    """Texts by the generation engine; the model is loaded when the first text is asked for."""

    def __init__(self, model: str, prompts: Path, settings: EngineSettings) -> None:
        self.model = model
        self.prompts_path = prompts
        self.settings = settings
        self._engine: Engine | None = None

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

    @property
    def end_tokens(self) -> frozenset[int]:
        """Those that end a text."""
        return frozenset(self.engine.eos_token_ids)

    def human_texts(self) -> list[str]:
        """Documents by people that go with the model."""
        return read_human_texts(HUMAN_TEXTS_PATH)

    def generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        """See `TextSource`."""
        asyncio.run(self._generate(cell, indices, seed, on_text))

    def close(self) -> None:
        """Stops the engine."""
        if self._engine is not None:
            self._engine.stop(drain_seconds=0)
            self._engine = None

    async def _generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        engine, watermark = self.engine, cell.watermark() if cell.scheme else None
        slots = asyncio.Semaphore(self.settings.max_sequences)
        last, last_rows = time.perf_counter(), engine.stats.rows

        async def complete(index: int) -> None:
            nonlocal last, last_rows
            tokens: list[int] = []
            watermarked = 0
            async with slots:
                prompt_ids = self.prompts[index % len(self.prompts)]
                async for delta in engine.generate(_request(prompt_ids, cell, watermark, index, seed)):
                    tokens += delta.token_ids
                    watermarked = delta.report.watermarked_blocks if delta.report else watermarked
            now, rows = time.perf_counter(), engine.stats.rows
            on_text(Completion(index, tuple(tokens), watermarked, now - last, rows - last_rows))
            last, last_rows = now, rows

        await asyncio.gather(*(complete(index) for index in indices))


def _request(
    prompt_ids: tuple[int, ...], cell: Cell, watermark: Watermark | None, index: int, seed: int
) -> GenerationRequest:
    marking = None
    if watermark:
        marking = Marking("evaluation", 1, "evaluation", watermark, cell.key(seed, index))
    return GenerationRequest(
        request_id=f"{cell.name}-{index}",
        prompt_ids=prompt_ids,
        sampling=SamplingParams(
            max_tokens=cell.tokens,
            temperature=cell.setting.temperature,
            top_k=cell.setting.top_k,
            top_p=cell.setting.top_p,
            seed=sampling_seed(seed, cell.name, index),
            ignore_eos=True,
        ),
        marking=marking,
        unmarked_reason=None if marking else "evaluation",
    )
