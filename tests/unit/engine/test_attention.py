"""One ragged pass against plain transformers: independent forwards, and the paper's 4D mask."""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from ttmark.gen_service.engine.attention import KvCache, attend_portably
from ttmark.gen_service.engine.loading import ATTENTION_NAME, register_attention
from ttmark.gen_service.engine.ragged import Append, Probe
from ttmark.gen_service.engine.runner import Runner

TOLERANCE = 1e-5
WINDOW = 8
SHAPE: dict[str, Any] = {
    "vocab_size": 128,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
WINDOWS: dict[str, Any] = {
    "head_dim": 16,
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}
CONFIGS: dict[str, transformers.PreTrainedConfig] = {
    "llama": transformers.LlamaConfig(**SHAPE),
    "mistral": transformers.MistralConfig(**SHAPE, sliding_window=WINDOW),
    "gemma3": transformers.Gemma3TextConfig(**SHAPE, **WINDOWS),
    "gpt-oss": transformers.GptOssConfig(**SHAPE, **WINDOWS, num_local_experts=4, num_experts_per_tok=2),
    "deepseek-v3": transformers.DeepseekV3Config(
        **SHAPE | {"num_key_value_heads": 4},
        qk_nope_head_dim=8,
        qk_rope_head_dim=4,
        v_head_dim=10,
        kv_lora_rank=16,
        q_lora_rank=24,
        moe_intermediate_size=24,
        n_routed_experts=8,
        n_group=4,
        topk_group=2,
        num_experts_per_tok=2,
        first_k_dense_replace=1,
    ),
}
TEXT = np.random.default_rng(7).integers(0, 128, 40).tolist()
CANDIDATES = [5, 9, 77, 101, 3]


@pytest.fixture(params=CONFIGS, scope="module")
def model(request: pytest.FixtureRequest) -> Any:
    register_attention()
    torch.manual_seed(1)
    random_model = transformers.AutoModelForCausalLM.from_config(CONFIGS[request.param]).eval()
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


@pytest.mark.parametrize("length", [1, 3, WINDOW - 2, WINDOW - 1, WINDOW, WINDOW + 1, 23])
def test_probed_candidates_equal_independent_forwards(model: Any, reproducible: bool, length: int) -> None:
    references = [independent(model, [*TEXT[:length], token]) for token in CANDIDATES]
    runner = ragged_runner(model, reproducible)
    prefill(runner, 17, TEXT[:length])
    logits = runner.forward([Probe(17, length, np.array(CANDIDATES)[:, None])])[0]
    assert largest_error(logits, references) <= TOLERANCE


@pytest.mark.parametrize("length", [1, WINDOW - 1, 23])
def test_a_tree_of_depth_two_equals_independent_forwards(model: Any, reproducible: bool, length: int) -> None:
    paths = [[5, 1], [5, 2], [9, 1], [77, 30], [77, 31], [5, 3]]
    references = [independent(model, TEXT[:length] + path) for path in paths]
    runner = ragged_runner(model, reproducible)
    prefill(runner, 0, TEXT[:length])
    logits = runner.forward([Probe(0, length, np.array(paths))])[0]
    assert largest_error(logits, references) <= TOLERANCE


@pytest.mark.parametrize("cuts", [[40], [7, 14, 21, 40], [1, 2, 40], [9, 38, 40]])
def test_a_prompt_in_chunks_equals_a_prompt_at_once(model: Any, reproducible: bool, cuts: list[int]) -> None:
    reference = independent(model, TEXT)
    runner = ragged_runner(model, reproducible)
    for start, stop in zip([0, *cuts[:-1]], cuts, strict=True):
        chunk = Append(5, start, TEXT[start:stop], is_chunk=True, wants_logits=stop == 40)
        logits = runner.forward([chunk])[0]
    assert largest_error(logits, [reference]) <= TOLERANCE


@pytest.mark.parametrize("size", [1, 2, 3])
def test_committed_blocks_equal_independent_forwards(model: Any, reproducible: bool, size: int) -> None:
    starts = range(10, 10 + 6 * size, size)
    references = [independent(model, TEXT[: start + size]) for start in starts]
    runner = ragged_runner(model, reproducible)
    prefill(runner, 0, TEXT[:10])
    for start, reference in zip(starts, references, strict=True):
        commit = Append(0, start, TEXT[start : start + size], is_chunk=False, wants_logits=True)
        assert largest_error(runner.forward([commit])[0], [reference]) <= TOLERANCE


def test_a_probe_leaves_the_cache_as_it_was(model: Any, reproducible: bool) -> None:
    reference = independent(model, TEXT[:12])
    runner = ragged_runner(model, reproducible)
    prefill(runner, 0, TEXT[:11])
    runner.forward([Probe(0, 11, np.array(CANDIDATES)[:, None])])
    commit = Append(0, 11, TEXT[11:12], is_chunk=False, wants_logits=True)
    assert largest_error(runner.forward([commit])[0], [reference]) <= TOLERANCE


def test_work_of_many_sequences_in_one_pass_does_not_mix(model: Any, reproducible: bool) -> None:
    other = TEXT[::-1]
    references = [
        independent(model, TEXT[:15]),
        independent(model, [*other[:20], 9]),
        independent(model, other[5:30]),
        independent(model, TEXT[20:32]),
    ]
    runner = ragged_runner(model, reproducible)
    runner.forward(
        [
            Append(0, 0, TEXT[:13], is_chunk=True, wants_logits=False),
            Append(50, 0, other[:20], is_chunk=True, wants_logits=False),
            Append(100, 0, TEXT[20:25], is_chunk=True, wants_logits=False),
        ]
    )
    logits = runner.forward(
        [
            Append(0, 13, TEXT[13:15], is_chunk=False, wants_logits=True),
            Probe(50, 20, np.array([[9]])),
            Append(200, 0, other[5:30], is_chunk=True, wants_logits=True),
            Append(100, 5, TEXT[25:32], is_chunk=True, wants_logits=True),
        ]
    )
    assert largest_error(torch.cat(logits), references) <= TOLERANCE


@pytest.mark.parametrize("depth", [1, 2])
def test_blocks_adopted_from_their_probes_equal_independent_forwards(model: Any, depth: int) -> None:
    """Sequences of several lengths, under and over the window, probed and committed together."""
    lengths = (3, WINDOW - 1, 12, 23)
    paths = np.array([[5, 1], [5, 2], [9, 1], [77, 30]])[:, :depth]
    paths = np.unique(paths, axis=0)
    runner = ragged_runner(model, reproducible=False)
    bases = [70 * index for index in range(len(lengths))]
    for base, length in zip(bases, lengths, strict=True):
        prefill(runner, base, TEXT[:length])
    probes = [Probe(base, length, paths) for base, length in zip(bases, lengths, strict=True)]
    runner.forward(list(probes))
    commits, references = [], []
    for probe in probes:
        chosen = paths[probe.position % len(paths)].tolist()
        assert probe.branches is not None
        rows = probe.branches.rows_of(chosen)
        assert rows is not None
        stop = probe.position + depth
        adopted = (probe.branches, rows)
        commits.append(Append(probe.base, stop, [42], is_chunk=False, wants_logits=True, adopted=adopted))
        references.append([*TEXT[: probe.position], *chosen, 42])
    logits = torch.cat(runner.forward(list(commits)))
    again = [Probe(probe.base, probe.position + depth + 1, np.array([[8]])) for probe in probes]
    later = torch.cat(runner.forward(list(again)))
    assert largest_error(logits, [independent(model, tokens) for tokens in references]) <= TOLERANCE
    assert largest_error(later, [independent(model, [*tokens, 8]) for tokens in references]) <= TOLERANCE


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
