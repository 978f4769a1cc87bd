"""Marked texts without a model: token ids of many at once, and what another system writes."""

from collections.abc import Sequence

import numpy as np

from ttmark.shared.tokenization import TextTokenizer
from ttmark.shared.watermark.foreign.vllm_gumbel import uniform
from ttmark.shared.watermark.prf import key_lanes
from ttmark.shared.watermark.schemes.watermark import Watermark


def written(watermark: Watermark, keys: list[bytes], blocks: int, choices: int) -> list[np.ndarray]:
    """A text under each key: each block is one of `choices` random ones, drawn as Algorithm 1 says."""
    generator = np.random.default_rng(len(keys))
    size, width = watermark.block_size, watermark.context_width
    lanes = np.array([key_lanes(key) for key in keys])
    firsts = np.arange(len(keys)) * choices
    texts = generator.integers(50_000, size=(len(keys), watermark.warmup_blocks * size))
    for _ in range(blocks):
        candidates = generator.integers(50_000, size=(len(keys) * choices, size))
        even = np.full(len(candidates), 1 / choices)
        offsets = np.append(firsts, len(candidates))
        marked = watermark.reweight(lanes, texts[:, -width:], candidates, even, offsets)
        sums = np.cumsum(marked.reshape(len(keys), choices), axis=1)
        drawn = (generator.random((len(keys), 1)) * sums[:, -1:] > sums).sum(axis=1)
        texts = np.hstack([texts, candidates[firsts + drawn]])
    return list(texts)


def written_by_vllm(tokenizer: TextTokenizer, key: int, ids: Sequence[int], tokens: int) -> str:
    """A text as vLLM writes it: of eight ids that are equally likely the one with the largest number."""
    generator, text = np.random.default_rng(3), list[int]()
    while len(text) < tokens:
        choices = generator.choice(ids, size=8, replace=False)
        context = ([-1] * 4 + text)[-4:]
        text.append(int(choices[np.argmax(uniform(key, np.array([context] * 8), choices))]))
    return tokenizer.decode(text)
