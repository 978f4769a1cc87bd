"""Many completions through the engine, as a client's requests would run: batched, each with its own seed."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from rich.progress import Progress

from evaluation.settings import SamplingSetting
from gen_service.engine import Engine, GenerationRequest, Marking, SamplingParams

IN_FLIGHT = 16


@dataclass(frozen=True, slots=True)
class Completion:
    """One generated text: token ids of the completion alone."""

    token_ids: tuple[int, ...]


def generate_texts(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    setting: SamplingSetting,
    max_tokens: int,
    marking: Marking | None,
    *,
    title: str,
    progress: Progress,
) -> list[Completion]:
    """One completion of exactly `max_tokens` tokens for each prompt, in order; seeds are the positions."""
    task = progress.add_task(title, total=len(prompts))

    async def complete(index: int, slots: asyncio.Semaphore) -> Completion:
        request = GenerationRequest(
            request_id=f"{title}-{index}",
            prompt_ids=tuple(prompts[index]),
            sampling=SamplingParams(
                max_tokens=max_tokens,
                temperature=setting.temperature,
                top_k=setting.top_k,
                top_p=setting.top_p,
                seed=index,
                ignore_eos=True,
            ),
            marking=marking,
            unmarked_reason=None if marking else "evaluation",
        )
        async with slots:
            tokens = [token async for delta in engine.generate(request) for token in delta.token_ids]
        progress.advance(task)
        return Completion(tuple(tokens))

    async def complete_all() -> list[Completion]:
        slots = asyncio.Semaphore(IN_FLIGHT)
        return await asyncio.gather(*(complete(index, slots) for index in range(len(prompts))))

    return asyncio.run(complete_all())
