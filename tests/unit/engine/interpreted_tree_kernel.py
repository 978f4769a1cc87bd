"""The Triton kernel for tree rows, run by Triton's interpreter; `test_tree_kernel.py` starts this with it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, Gemma3TextConfig, GptOssConfig, MistralConfig

from ttmark.gen_service.engine.attention import KvCache
from ttmark.gen_service.engine.loading import ATTENTION_NAME, register_attention
from ttmark.gen_service.engine.ragged import Append, Probe
from ttmark.gen_service.engine.runner import ROW_COUNTS, Runner
from ttmark.gen_service.engine.tree_attention import TreeKernel, tile_spans, triton_kernel
from ttmark.gen_service.engine.tree_kernel import attend_tree, tile_rows

SHAPE: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 64,
}
MODELS = {  # whose layers are of every kind: all tokens, the latest ones, sinks
    "gemma3": Gemma3TextConfig(
        **SHAPE, sliding_window=6, layer_types=["sliding_attention", "full_attention"]
    ),
    "gpt-oss": GptOssConfig(
        **SHAPE,
        sliding_window=6,
        layer_types=["sliding_attention", "full_attention"],
        num_local_experts=4,
        num_experts_per_tok=2,
    ),
}


def attend_slowly(
    query: Any, key: Any, value: Any, keys: Any, values: Any, prefix: range, own: Any, sinks: Any
) -> Any:
    """One row: query [heads, dim] over the prefix, the rows `own` of the pass and the sinks [heads]."""
    every = torch.cat([keys[list(prefix)], key[own]]).double()  # [n, kv_heads, dim]
    each = torch.cat([values[list(prefix)], value[own]]).double()
    groups = query.shape[0] // every.shape[1]
    scores = torch.einsum("hd,nhd->hn", query.double(), every.repeat_interleave(groups, 1))
    scores = scores * query.shape[1] ** -0.5
    if sinks is not None:
        scores = torch.cat([scores, sinks.double()[:, None]], dim=1)
    mass = torch.softmax(scores, dim=1)[:, : len(every)]
    return torch.einsum("hn,nhd->hd", mass, each.repeat_interleave(groups, 1))


@pytest.mark.parametrize("with_sinks", [False, True])
@pytest.mark.parametrize(("heads", "kv_heads", "dim"), [(4, 2, 16), (5, 1, 24)])
def test_the_kernel_equals_attention_row_by_row(
    heads: int, kv_heads: int, dim: int, with_sinks: bool
) -> None:
    generator = torch.Generator().manual_seed(dim)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    rows = 9
    query, key, value = (
        draw(rows + 2, heads, dim),
        draw(rows + 2, kv_heads, dim),
        draw(rows + 2, kv_heads, dim),
    )
    keys, values = draw(150, kv_heads, dim), draw(150, kv_heads, dim)
    spans = [(0, 5, 3, 40), (5, 8, 100, 117), (8, 9, 20, 20)]  # the last row has no prefix
    own = torch.full((rows, 3), -1, dtype=torch.int32)
    own[:, 0] = torch.arange(rows)
    own[6, 1:] = torch.tensor([5, 4])
    tiles = torch.from_numpy(tile_spans(spans, tile_rows(heads // kv_heads))).int()
    sinks = draw(heads) * 4 if with_sinks else None
    out = attend_tree(query, key, value, keys, values, tiles, own, dim**-0.5, sinks)
    expected = [
        attend_slowly(
            query[row], key, value, keys, values, range(first, last), own[row][own[row] >= 0], sinks
        )
        for start, stop, first, last in spans
        for row in range(start, stop)
    ]
    torch.testing.assert_close(out.double(), torch.stack(expected), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_a_pass_with_the_kernel_equals_one_without(name: str) -> None:
    register_attention()
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(MODELS[name], attn_implementation=ATTENTION_NAME).eval()
    text = np.random.default_rng(5).integers(0, 64, 14).tolist()
    pieces = [
        Probe(0, 12, np.array([[3], [9], [40]])),
        Probe(32, 5, np.array([[1, 2], [1, 7], [8, 4]])),
        Append(32, 5, text[5:8], is_chunk=False, wants_logits=True),
    ]

    def logits(tree_kernel: TreeKernel | None) -> torch.Tensor:
        runner = Runner(model, KvCache(64), tree_kernel=tree_kernel)
        runner.forward([Append(0, 0, text[:12], is_chunk=True, wants_logits=False)])
        runner.forward([Append(32, 0, text[:5], is_chunk=True, wants_logits=False)])
        return torch.cat(runner.forward(pieces))

    torch.testing.assert_close(logits(triton_kernel()), logits(None), atol=1e-5, rtol=1e-5)


class Recorder:
    """Repeats the recorded function itself where a GPU would repeat its kernels."""

    def __init__(self) -> None:
        self.replays: list[int] = []  # rows of each

    def __call__(self, run: Callable[[], torch.Tensor]) -> tuple[Callable[[], None], torch.Tensor]:
        result = run()

        def replay() -> None:
            self.replays.append(len(result))
            result.copy_(run())

        return replay, result


def test_passes_from_graphs_equal_passes_without() -> None:
    register_attention()
    torch.manual_seed(4)
    config = MistralConfig(**SHAPE | {"num_hidden_layers": 1}, sliding_window=6)
    model = AutoModelForCausalLM.from_config(config, attn_implementation=ATTENTION_NAME).eval()
    text = np.random.default_rng(6).integers(0, 64, 40).tolist()
    passes: list[list[Append | Probe]] = [
        [Append(0, 0, text[:9], is_chunk=True, wants_logits=True)],
        [Probe(0, 9, np.array([[3], [9], [40]]))],
        [
            Append(0, 9, text[9:11], is_chunk=False, wants_logits=True),
            Append(30, 0, text[:7], is_chunk=True, wants_logits=True),
        ],
        [
            Probe(0, 11, np.arange(4)[:, None]),
            Append(30, 7, text[20:23], is_chunk=False, wants_logits=True),
        ],
        [Probe(0, 11, np.array([[1, 2], [1, 7], [8, 4]])), Probe(30, 10, np.array([[5, 6], [7, 8]]))],
        [
            Append(0, 11, text[11:12], is_chunk=False, wants_logits=True),
            Append(30, 10, text[23:26], is_chunk=False, wants_logits=True),
        ],
        [Probe(0, 12, np.array([[1], [2]])), Probe(30, 13, np.array([[1], [2]]))],
    ]
    recorder = Recorder()
    graphs = Runner(model, KvCache(64), tree_kernel=triton_kernel(), capture=recorder)
    plain = Runner(model, KvCache(64))
    for pieces in passes:
        expected = torch.cat(plain.forward(pieces))
        torch.testing.assert_close(torch.cat(graphs.forward(pieces)), expected, atol=1e-5, rtol=1e-5)
    assert recorder.replays == [8, 8, 16, 8, 8]  # all passes but the two with a prompt
    assert set(recorder.replays) <= set(ROW_COUNTS)
