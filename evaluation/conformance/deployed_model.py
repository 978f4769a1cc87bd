"""Answers of the deployed model: by its engine as the service runs it, with the deployed key or without."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ttmark.evaluation.conformance.plan import prompt_of
from ttmark.evaluation.engine_source import complete, completion_request
from ttmark.evaluation.experiment_cells import Cell, sampling_seed
from ttmark.evaluation.run_folder import OnText
from ttmark.gen_service.api.backend import ServedModel
from ttmark.gen_service.api.key_selection import markings
from ttmark.gen_service.api.marking_policy import MarkingChoice
from ttmark.gen_service.api.prompts import chat_prompt, plain_prompts
from ttmark.gen_service.engine import GenerationRequest, Marking
from ttmark.shared.keys.records import UnlockedKey
from ttmark.shared.schemas.chat import ChatMessage

AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class DeployedSource:
    """A `TextSource` that writes what the service would: chat template, pool, branch budget, ends of text.

    Attributes:
        key: its primary version marks.
    """

    model: ServedModel
    key: UnlockedKey

    def generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        """See `TextSource`; an answer ends where the model ends it, and at `cell.tokens` at the latest."""
        asyncio.run(self._generate(cell, indices, seed, on_text))

    async def _generate(self, cell: Cell, indices: Sequence[int], seed: int, on_text: OnText) -> None:
        async def request(index: int) -> GenerationRequest:
            prompt_ids = await self._prompt(prompt_of(index).prompt)
            text_seed = sampling_seed(seed, cell.name, index)
            marking = self._marking(text_seed, prompt_ids) if cell.scheme else None
            return completion_request(cell, index, prompt_ids, text_seed, marking, ignore_eos=False)

        slots = asyncio.Semaphore(AT_ONCE)
        await complete(self.model.generator.generate, request, indices, slots, on_text)

    async def _prompt(self, message: str) -> tuple[int, ...]:
        if self.model.conversations is None:
            (read,) = await plain_prompts([f"Question: {message}\nAnswer:"], self.model)
            return read.token_ids
        asked = [ChatMessage(role="user", content=message)]
        return (await chat_prompt(asked, self.model, field="messages", label=None)).token_ids

    def _marking(self, seed: int, prompt_ids: Sequence[int]) -> Marking | None:
        """The primary version's, with a key of its pool as the service draws it; of payloads any."""
        key, version = self.key, self.key.primary
        if version is None:
            raise ValueError(f"key {key.key_id} has no primary version, so that nothing is marked with it")
        profile = key.profile
        first = Marking(key.key_id, version.version, profile.profile_id, profile.watermark(), version.prf_key)
        (marking,) = markings(MarkingChoice(first, pool=version.prf_keys), seed, prompt_ids, 1)
        return marking
