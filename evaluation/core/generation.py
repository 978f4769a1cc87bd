"""Scores of simulated watermarked text: blocks drawn from P_w under random PRF words."""

import numpy as np
from numpy.typing import NDArray

from evaluation.core.language_model import Blocks, block_distributions, confident_shares
from shared.watermark.schemes.base import Scheme

# Blocks reweighted at once: their candidates stay in cache.
CHUNK_BLOCKS = 500


def sample_scores(scheme: Scheme, blocks: Blocks, rng: np.random.Generator) -> NDArray[np.float64]:
    """The raw score [S] of one block drawn from each reweighted distribution."""
    words = random_words(rng, blocks.probs.size, scheme.word_count)
    contexts = random_words(rng, len(blocks.segments), scheme.word_count)
    reweighted = scheme.reweight(blocks.probs, words, contexts, blocks.segments)
    cumulative = blocks.segments.cumulative_sum(reweighted)
    passed = cumulative <= blocks.segments.spread(rng.random(len(blocks.segments)))
    drawn = blocks.segments.starts + blocks.segments.sum(passed.astype(float)).astype(int)
    drawn = np.minimum(drawn, blocks.segments.offsets[1:] - 1)
    scores: NDArray[np.float64] = scheme.score(words[drawn], contexts)
    return scores


def document_scores(
    scheme: Scheme, block_size: int, documents: int, blocks: int, seed: int, confident_share: float
) -> NDArray[np.float64]:
    """Raw scores [documents, blocks] of watermarked documents of the simulated language model."""
    rng = np.random.default_rng(seed)
    share = np.repeat(confident_shares(documents, rng, confident_share), blocks)
    parts = [
        sample_scores(scheme, block_distributions(part, block_size, rng), rng)
        for part in np.array_split(share, -(-share.size // CHUNK_BLOCKS))
    ]
    return np.concatenate(parts).reshape(documents, blocks)


def random_words(rng: np.random.Generator, rows: int, lanes: int) -> NDArray[np.int64]:
    """PRF words of a random key."""
    return rng.integers(-(2**63), 2**63, (rows, lanes), dtype=np.int64)
