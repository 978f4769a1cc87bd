"""Distortion on the served path: over random keys, texts are distributed as the model's own."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.vllm.conftest import complete
from tests.vllm.every_kind import SCHEMES
from ttmark.gen_service.engine import GenerationRequest, Marking, SamplingParams
from ttmark.shared.watermark import Watermark

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

KEYS, ALL_KEYS = 200, 10_000
HOURS = (pytest.mark.slow, pytest.mark.timeout(7200))
AT_ONCE = 48
CANDIDATES = 3
PROMPT = (17, 4, 250, 33, 90)
SMALLEST_EXPECTED = 5.0
WORST = 1e-3
"""Least p-value that passes; keys and seeds are fixed."""

Tokens = tuple[int, ...]


class Model:
    """The model's own probabilities among its likeliest tokens, by transformers."""

    def __init__(self, folder: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        self._known: dict[Tokens, dict[int, float]] = {}

    def next(self, after: Tokens) -> dict[int, float]:
        """Probabilities of the `CANDIDATES` tokens that may follow the prompt and `after`."""
        if after not in self._known:
            with torch.inference_mode():
                logits = self._model(torch.tensor([[*PROMPT, *after]])).logits[0, -1].double()
            values, ids = logits.topk(CANDIDATES)
            self._known[after] = dict(zip(ids.tolist(), values.softmax(0).tolist(), strict=True))
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
    """The first two blocks of one prompt's completions, each with a seed, and if no key is given
    with a key, of its own.

    The first is sampled without a watermark, since it is the context of the second.
    """
    rng = np.random.default_rng(11)
    places = asyncio.Semaphore(AT_ONCE)

    async def text(own_key: bytes, seed: int) -> Tokens:
        sampling = SamplingParams(
            2 * watermark.block_size, temperature=1.0, top_k=CANDIDATES, seed=seed, ignore_eos=True
        )
        marking = Marking("k", 1, "p", watermark, own_key)
        async with places:
            answer = await complete(engine, GenerationRequest("r", PROMPT, sampling, marking))
        assert answer.report.watermarked_blocks == 1
        return answer.tokens

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
        small = due < SMALLEST_EXPECTED
        if small.any():
            seen, due = np.append(seen[~small], seen[small].sum()), np.append(due[~small], due[small].sum())
        if len(due) < 2 or due.min() < SMALLEST_EXPECTED / 5:
            continue
        statistic += float(((seen - due) ** 2 / due).sum())
        freedom, cells = freedom + len(due) - 1, cells + len(due)
    half = torch.tensor([freedom / 2, statistic / 2], dtype=torch.float64)
    return float(torch.special.gammaincc(*half)), cells


@pytest.fixture(scope="module")
def model(llama: Path) -> Model:
    return Model(llama)


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize(
    ("scheme", "keys"),
    [
        ("gumbel", KEYS),
        *(pytest.param(scheme, ALL_KEYS, marks=HOURS) for scheme in SCHEMES),
    ],
)
def test_blocks_over_random_keys_follow_the_model(
    engine: Any, model: Model, block_size: int, scheme: str, keys: int, record_result: Any
) -> None:
    found = asyncio.run(texts(engine, Watermark(scheme, block_size, block_size), keys))
    probability, cells = p_value(found, model, block_size)
    record_result(
        f"blocks of {block_size} over {keys:,} keys, {scheme}, vLLM engine",
        "as the model's own: chi-square p > 0.001",
        f"p = {probability:.3f} over {cells} cells",
    )
    assert cells > 2
    assert probability > WORST


def test_texts_of_a_single_key_do_not(engine: Any, model: Model) -> None:
    """So that the test is known to be able to fail."""
    found = asyncio.run(texts(engine, Watermark("gumbel", 2, 2), KEYS, key=bytes(16)))
    assert p_value(found, model, 2)[0] < WORST
