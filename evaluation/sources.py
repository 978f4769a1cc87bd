"""Where texts come from: the project's engine, batched, each text with its own key and seed."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from evaluation.cells import Cell
from evaluation.completions import Completion
from evaluation.prompts import MAX_TOKENS, read_prompts
from evaluation.seeds import sampling_seed
from gen_service.engine import Engine, EngineSettings, GenerationRequest, Marking, SamplingParams
from shared.tokenization import TextTokenizer
from shared.watermark import Watermark

OnText = Callable[[Completion], None]


class TextSource(Protocol):
    """What makes the texts of a cell."""

    def generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        """Makes the texts with these numbers and hands each over when it is finished."""
        ...


class EngineSource:
    """Texts by the generation engine; the model is loaded when the first text is asked for."""

    def __init__(
        self, model: str, prompts: Path, settings: EngineSettings, prompt_tokens: int = MAX_TOKENS
    ) -> None:
        self.model = model
        self._prompts_path = prompts
        self._prompt_tokens = prompt_tokens
        self._settings = settings
        self._engine: Engine | None = None
        self._prompts: list[tuple[int, ...]] = []

    @property
    def engine(self) -> Engine:
        """The started engine."""
        if self._engine is None:
            self._engine = Engine.load(self.model, self._settings)
            self._engine.start()
        return self._engine

    @property
    def tokenizer(self) -> TextTokenizer:
        """The model's tokenizer; of a folder it is read without the model."""
        return TextTokenizer.load(self.model) if Path(self.model).is_dir() else self.engine.tokenizer

    @property
    def prompts(self) -> list[tuple[int, ...]]:
        """Prompts as token ids; text i continues prompt i, counted round."""
        if not self._prompts:
            self._prompts = read_prompts(self._prompts_path, self.tokenizer, self._prompt_tokens)
        return self._prompts

    def generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        """See `TextSource`."""
        watermark = cell.watermark() if cell.scheme else None
        asyncio.run(self._generate(cell, watermark, indices, seed, on_text))

    def close(self) -> None:
        """Stops the engine."""
        if self._engine is not None:
            self._engine.stop(drain_seconds=0)
            self._engine = None

    async def _generate(
        self, cell: Cell, watermark: Watermark | None, indices: Sequence[int], seed: int, on_text: OnText
    ) -> None:
        engine = self.engine
        slots = asyncio.Semaphore(self._settings.max_sequences)
        last, last_rows = time.perf_counter(), engine.stats.rows

        async def complete(index: int) -> None:
            nonlocal last, last_rows
            tokens: list[int] = []
            watermarked = 0
            async with slots:
                async for delta in engine.generate(self._request(cell, watermark, index, seed)):
                    tokens += delta.token_ids
                    watermarked = delta.report.watermarked_blocks if delta.report else watermarked
            now, rows = time.perf_counter(), engine.stats.rows
            on_text(Completion(index, tuple(tokens), watermarked, now - last, rows - last_rows))
            last, last_rows = now, rows

        await asyncio.gather(*(complete(index) for index in indices))

    def _request(self, cell: Cell, watermark: Watermark | None, index: int, seed: int) -> GenerationRequest:
        marking = None
        if watermark:
            marking = Marking("evaluation", 1, "evaluation", watermark, cell.key(seed, index))
        options: dict[str, Any] = {} if cell.max_branches is None else {"max_branches": cell.max_branches}
        return GenerationRequest(
            request_id=f"{cell.name}-{index}",
            prompt_ids=self.prompts[index % min(cell.prompts or len(self.prompts), len(self.prompts))],
            sampling=SamplingParams(
                max_tokens=cell.tokens,
                temperature=cell.setting.temperature,
                top_k=cell.setting.top_k,
                top_p=cell.setting.top_p,
                frequency_penalty=cell.setting.frequency_penalty,
                seed=sampling_seed(seed, cell.name, index),
                ignore_eos=True,
                **options,
            ),
            marking=marking,
            unmarked_reason=None if marking else "evaluation",
        )
