"""Distortion on the served path: over random keys, texts are distributed as the model's own."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from tests.features.vllm.installed.every_kind import SCHEMES
from tests.harness.distortion import PROMPT, WORST, Model, Tokens, p_value, texts
from ttmark.shared.watermark.schemes.watermark import Watermark

pytest.importorskip("vllm", reason="needs vLLM: make test-vllm")

KEYS, ALL_KEYS = 200, 10_000
HOURS = (pytest.mark.slow, pytest.mark.timeout(7200))


@pytest.fixture(scope="module")
def model(llama: Path) -> Model:
    """By transformers."""
    loaded = AutoModelForCausalLM.from_pretrained(llama, attn_implementation="eager").eval()

    @torch.inference_mode()
    def logits_after(after: Tokens) -> torch.Tensor:
        last: torch.Tensor = loaded(torch.tensor([[*PROMPT, *after]])).logits[0, -1]
        return last

    return Model(logits_after)


@pytest.mark.parametrize("block_size", [1, 2, 3])
@pytest.mark.parametrize(
    ("scheme", "keys"),
    [("gumbel", KEYS), *(pytest.param(scheme, ALL_KEYS, marks=HOURS) for scheme in SCHEMES)],
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
