"""Answers of the deployed model: by its engine as the service runs it, with the deployed key or without."""

import asyncio
import time
from collections.abc import Sequence

from ttmark.evaluation.conformance.plan import prompt_of
from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.run_folder import Completion, OnText
from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.api.key_selection import markings
from ttmark.gen_service.api.marking_policy import MarkingChoice
from ttmark.gen_service.api.prompts import chat_prompt, plain_prompts
from ttmark.gen_service.engine import GenerationRequest, Marking, SamplingParams
from ttmark.shared.keys.records import UnlockedKey
from ttmark.shared.schemas.chat import ChatMessage

AT_ONCE = 32
_UNMARKED = "conformance"


class DeployedSource:
    """A `TextSource` that writes what the service would: chat template, pool, branch budget, ends of text.

    Args:
        key: its primary version marks.
    """

    def __init__(self, model: ServedModel, key: UnlockedKey) -> None:
        self._model = model
        self._key = key

    def generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        """See `TextSource`; an answer ends where the model ends it, and at `cell.tokens` at the latest."""
        asyncio.run(self._generate(cell, indices, seed, on_text))

    async def _generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        slots, last = asyncio.Semaphore(AT_ONCE), time.perf_counter()

        async def complete(index: int) -> None:
            nonlocal last
            tokens: list[int] = []
            marked = 0
            async with slots:
                async for delta in self._model.generator.generate(await self._request(cell, index, seed)):
                    tokens += delta.token_ids
                    marked = delta.report.watermarked_blocks if delta.report else marked
            now = time.perf_counter()
            on_text(Completion(index, tuple(tokens), marked, now - last, rows=0))
            last = now

        await asyncio.gather(*(complete(index) for index in indices))

    async def _request(self, cell: Cell, index: int, seed: int) -> GenerationRequest:
        prompt_ids = await self._prompt(prompt_of(index).prompt)
        text_seed = sampling_seed(seed, cell.name, index)
        marking = self._marking(text_seed, prompt_ids) if cell.scheme else None
        return GenerationRequest(
            request_id=f"{cell.name}-{index}",
            prompt_ids=prompt_ids,
            sampling=SamplingParams(
                max_tokens=cell.tokens,
                temperature=cell.setting.temperature,
                top_k=cell.setting.top_k,
                top_p=cell.setting.top_p,
                seed=text_seed,
            ),
            marking=marking,
            unmarked_reason=None if marking else _UNMARKED,
        )

    async def _prompt(self, message: str) -> tuple[int, ...]:
        if self._model.conversations is None:
            (read,) = await plain_prompts([f"Question: {message}\nAnswer:"], self._model)
            return read.token_ids
        asked = [ChatMessage(role="user", content=message)]
        return (await chat_prompt(asked, self._model, field="messages", label=None)).token_ids

    def _marking(self, seed: int, prompt_ids: Sequence[int]) -> Marking | None:
        """The primary version's, with a key of its pool as the service draws it; of payloads any."""
        key, version = self._key, self._key.primary
        if version is None:
            raise ValueError(f"key {key.key_id} has no primary version, so that nothing is marked with it")
        profile = key.profile
        first = Marking(key.key_id, version.version, profile.profile_id, profile.watermark(), version.prf_key)
        (marking,) = markings(MarkingChoice(first, pool=version.prf_keys), seed, prompt_ids, 1)
        return marking
