"""Token ids of many marked texts at once, without a model."""

import numpy as np

from ttmark.shared.watermark import Watermark, key_lanes


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
