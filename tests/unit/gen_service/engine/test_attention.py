"""One ragged pass against plain transformers: independent forwards, and the paper's 4D mask."""

from copy import copy
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.unit.gen_service.engine.architectures import SERVED
from ttmark.gen_service.engine.model.attention import KvCache, attend_portably
from ttmark.gen_service.engine.model.ragged_batch import Append, Probe
from ttmark.gen_service.engine.model.runner import Runner
from ttmark.gen_service.engine.model.transformers_model import ATTENTION_NAME, register_attention

TOLERANCE = 1e-5
WINDOW = 16
MODELS = ("Llama", "Mistral", "Gemma 3", "gpt-oss", "DeepSeek V3")
TEXT = np.random.default_rng(7).integers(0, 128, 40).tolist()
CANDIDATES = [5, 9, 77, 101, 3]


@pytest.fixture(params=MODELS, scope="module")
def model(request: pytest.FixtureRequest) -> Any:
    register_attention()
    torch.manual_seed(1)
    config = copy(SERVED[request.param])
    config.initializer_range = 0.02
    random_model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():
        for parameter in random_model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return random_model


def independent(model: Any, tokens: list[int]) -> torch.Tensor:
    """Logits after `tokens`, computed alone and from the start by transformers' eager attention."""
    return _eager(model, tuple(tokens))


@cache  # the fast passes are compared with the same ones
@torch.inference_mode()
def _eager(model: Any, tokens: tuple[int, ...]) -> torch.Tensor:
    model.set_attn_implementation("eager")
    return model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0, -1]


@pytest.fixture(params=[True, False], ids=["reproducible", "fast"])
def reproducible(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def ragged_runner(model: Any, reproducible: bool) -> Runner:
    model.set_attn_implementation(ATTENTION_NAME)
    return Runner(model, KvCache(300), reproducible=reproducible)


def prefill(runner: Runner, base: int, tokens: list[int]) -> None:
    runner.forward([Append(base, 0, tokens, is_chunk=True, wants_logits=False)])


def largest_error(logits: torch.Tensor, references: list[torch.Tensor]) -> float:
    return float((logits - torch.stack(references)).abs().max())


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_computed_together_equals_independent_forwards(
    model: Any, reproducible: bool, seed: int
) -> None:
    """Passes over three growing texts: chunks, commits, and probes, which fast passes adopt."""
    rng = np.random.default_rng(seed)
    runner = ragged_runner(model, reproducible)
    texts: list[list[int]] = [[], [], []]
    probes: dict[int, Probe] = {}
    computed: list[torch.Tensor] = []
    ends: list[list[int]] = []
    for _ in range(9):
        pieces: list[Append | Probe] = []
        for place, text in enumerate(texts):
            base, probe, adopted = 17 + 90 * place, probes.pop(place, None), None
            if text and rng.random() < 0.5:
                paths = np.unique(rng.integers(0, 3, (5, int(rng.integers(1, 4)))), axis=0)
                probes[place] = Probe(base, len(text), paths)
                pieces.append(probes[place])
                ends += [[*text, *path] for path in paths.tolist()]
                continue
            if probe is not None and probe.branches is not None:
                chosen = rng.choice(probe.paths).tolist()
                rows = probe.branches.rows_of(chosen)
                assert rows is not None
                adopted = (probe.branches, rows)
                text += chosen
            tokens = rng.integers(0, 128, int(rng.integers(1, 4 if text else WINDOW + 4))).tolist()
            is_chunk = adopted is None and bool(rng.integers(2))
            wanted = bool(rng.random() < 0.8)
            pieces.append(Append(base, len(text), tokens, is_chunk, wanted, adopted))
            text += tokens
            ends += [list(text)] if wanted else []
        computed += runner.forward(pieces)
    references = [independent(model, end) for end in ends]
    assert largest_error(torch.cat(computed), references) <= TOLERANCE
    assert max(map(len, texts)) > WINDOW


def test_the_pass_equals_the_branch_isolating_mask_of_the_paper(model: Any, reproducible: bool) -> None:
    """Eq. 5 as an additive 4D mask on plain transformers, all candidates at the position after the prefix."""
    length, count = 23, len(CANDIDATES)
    model.set_attn_implementation("eager")
    positions = torch.tensor([*range(length), *[length] * count])
    with torch.inference_mode():
        references = model(
            input_ids=torch.tensor([TEXT[:length] + CANDIDATES]),
            position_ids=positions[None],
            attention_mask=_paper_mask(model, positions, length),
            use_cache=False,
        ).logits[0, length:]
    runner = ragged_runner(model, reproducible)
    prefill(runner, 0, TEXT[:length])
    logits = runner.forward([Probe(0, length, np.array(CANDIDATES)[:, None])])[0]
    assert largest_error(logits, list(references)) <= TOLERANCE


@pytest.mark.parametrize("keys", [1, 7, 600])
def test_the_portable_prefix_attention_equals_the_kernel_of_the_cpu(keys: int) -> None:
    generator = torch.Generator().manual_seed(keys)
    query, key, value = (torch.randn((1, 2, rows, 16), generator=generator) for rows in (9, keys, keys))
    out, lse = attend_portably(query, key, value, 0.3)
    expected = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(query, key, value, scale=0.3)
    torch.testing.assert_close((out, lse), tuple(expected), atol=1e-5, rtol=1e-5)


def _paper_mask(model: Any, positions: torch.Tensor, length: int) -> Any:
    rows = torch.arange(len(positions))
    in_prefix = rows[None] < length
    seen = (rows[:, None] >= rows[None]) & (in_prefix | (rows[:, None] == rows[None]))
    near = positions[:, None] - positions[None] < WINDOW

    def additive(mask: torch.Tensor) -> torch.Tensor:
        return torch.where(mask, 0.0, torch.finfo(torch.float32).min)[None, None]

    if model.config.model_type in ("gemma3_text", "gpt_oss"):
        return {"full_attention": additive(seen), "sliding_attention": additive(seen & near)}
    return additive(seen & near if model.config.model_type == "mistral" else seen)
