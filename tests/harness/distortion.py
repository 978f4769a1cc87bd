"""Whether texts over random keys are distributed as the model's own, by chi-square."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ttmark.gen_service.decoding.request import GenerationRequest, Marking, SamplingParams
from ttmark.shared.watermark.schemes.watermark import Watermark

CANDIDATES = 3
PROMPT = (17, 4, 250, 33, 90)
WORST = 1e-3
"""Least p-value that passes; keys and seeds are fixed."""
_AT_ONCE, _SMALLEST_EXPECTED = 48, 5.0

Tokens = tuple[int, ...]


class Model:
    """A model's own probabilities among its likeliest tokens, from logits [vocab] behind some tokens."""

    def __init__(self, logits_after: Callable[[Tokens], torch.Tensor]) -> None:
        self._logits_after = logits_after
        self._known: dict[Tokens, dict[int, float]] = {}

    def next(self, after: Tokens) -> dict[int, float]:
        """Probabilities of the `CANDIDATES` tokens that may follow the prompt and `after`, and of ties."""
        if after not in self._known:
            logits = self._logits_after(after).double()
            ids = torch.nonzero(logits >= logits.topk(CANDIDATES).values[-1])[:, 0]
            self._known[after] = dict(zip(ids.tolist(), logits[ids].softmax(0).tolist(), strict=True))
        return self._known[after]

    def blocks(self, after: Tokens, size: int) -> dict[Tokens, float]:
        """Probabilities of all blocks of `size` tokens that may follow."""
        found: dict[Tokens, float] = {(): 1.0}
        for _ in range(size):
            found = {
                (*path, token): mass * probability
                for path, mass in found.items()
                for token, probability in self.next((*after, *path)).items()
            }
        return found


async def texts(engine: Any, watermark: Watermark, number: int, key: bytes | None = None) -> list[Tokens]:
    """The first two blocks of a prompt's completions, each with a seed and, unless given, a key of its own.

    The first is sampled without a watermark, since it is the context of the second.
    """
    rng = np.random.default_rng(11)
    places = asyncio.Semaphore(_AT_ONCE)

    async def text(own_key: bytes, seed: int) -> Tokens:
        sampling = SamplingParams(
            2 * watermark.block_size, temperature=1.0, top_k=CANDIDATES, seed=seed, ignore_eos=True
        )
        marking = Marking("k", 1, "p", watermark, own_key)
        async with places:
            request = GenerationRequest("r", PROMPT, sampling, marking)
            deltas = [delta async for delta in engine.generate(request)]
        assert deltas[-1].report.watermarked_blocks == 1
        return tuple(token for delta in deltas for token in delta.token_ids)

    return await asyncio.gather(*(text(key or rng.bytes(16), seed) for seed in range(number)))


def p_value(found: list[Tokens], model: Model, size: int) -> tuple[float, int]:
    """Chi-square of the second blocks against the model after each first block, summed; its cells."""
    by_first: dict[Tokens, Counter[Tokens]] = {}
    for each in found:
        by_first.setdefault(each[:size], Counter())[each[size:]] += 1
    statistic, freedom, cells = 0.0, 0, 0
    for first, counts in [*by_first.items(), ((), Counter(each[:size] for each in found))]:
        expected = model.blocks(first, size)
        assert counts.keys() <= expected.keys()
        seen = np.array([counts[block] for block in expected], dtype=float)
        due = np.array([*expected.values()]) * counts.total()
        small = due < _SMALLEST_EXPECTED
        if small.any():
            seen, due = np.append(seen[~small], seen[small].sum()), np.append(due[~small], due[small].sum())
        if len(due) < 2 or due.min() < _SMALLEST_EXPECTED / 5:
            continue
        statistic += float(((seen - due) ** 2 / due).sum())
        freedom, cells = freedom + len(due) - 1, cells + len(due)
    half = torch.tensor([freedom / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(*half)), cells
