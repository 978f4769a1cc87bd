"""Direct detection with a weight for each block, for who knows how likely a model found its tokens.

The best weight of a score in a sum is its expected excess over its variance; that of a block is the gain that
its scheme expects of a block so likely. Weights depend on the text and the model, never on the key, so the
p-value is exact whatever the model says; a wrong model, or wrong sampling, costs power alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.contexts import scored_positions
from ttmark.shared.watermark.detectors.tokens import check_tokens, context_and_block
from ttmark.shared.watermark.pool_scores import scores_under_each
from ttmark.shared.watermark.tails import corrected
from ttmark.shared.watermark.watermark import Watermark
from ttmark.shared.watermark.weighted_sums import most_weight, weighted_log10_tail, weighted_total

# Blocks that the model would not have written at this sampling count as this likely.
LEAST_PROBABILITY = 0.01

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One sum over blocks: log10 p, corrected for the hypotheses that were tried, and z."""

    log10_p: float
    z: float


@dataclass(frozen=True, slots=True)
class WeightedEvidence:
    """The hypothesis with the smallest weighted p-value.

    Attributes:
        weighted: of the blocks by their weights.
        unweighted: of the same blocks under the same key, each counted as the others.
        scored_blocks: complete, after the warm-up, with new contexts.
        weighted_blocks: those of them that the model left a choice.
        hypotheses: keys times phases.
        phase: offset of the block boundaries.
        pool_key: number of the key.
    """

    weighted: Evidence
    unweighted: Evidence
    scored_blocks: int
    weighted_blocks: int
    hypotheses: int
    phase: int
    pool_key: int


def block_weights(watermark: Watermark, probs: Floats) -> NDArray[np.int64]:
    """Whole weights [N], 0 to `most_weight`, of blocks that had the probabilities `probs` [N] in [0, 1]."""
    gains = watermark.expected_gain(np.clip(probs, LEAST_PROBABILITY, 1.0))
    most = watermark.expected_gain(np.array([LEAST_PROBABILITY]))
    weights: NDArray[np.int64] = np.rint(most_weight(probs.size) * gains / most).astype(np.int64)
    return weights


def detect_weighted(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    tokens: Sequence[int] | NDArray[np.int64],
    token_probs: Floats,
    phases: Sequence[int] = (0,),
) -> WeightedEvidence:
    """Tests a text under each key with block boundaries at each of `phases`.

    Args:
        token_probs: how likely the model found each token after those before it [tokens].

    Raises:
        ValueError: a token outside 0..2**32-2, a bad key, or another number of probabilities than tokens.
    """
    tokens = check_tokens(tokens)
    if token_probs.shape != tokens.shape:
        raise ValueError(f"{token_probs.size} probabilities for {tokens.size} tokens")
    tried = [_detect_at(watermark, prf_keys, tokens, token_probs, phase, len(phases)) for phase in phases]
    return min(tried, key=lambda evidence: evidence.weighted.log10_p)


def _detect_at(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    tokens: NDArray[np.int64],
    token_probs: Floats,
    phase: int,
    phases: int,
) -> WeightedEvidence:
    size, null = watermark.block_size, watermark.null
    starts = scored_positions(tokens, size, watermark.context_width, phase)
    probs = token_probs[starts[:, None] + np.arange(size)].prod(axis=1)
    weights = block_weights(watermark, probs)
    weighted = weights > 0
    kept = weights[weighted]
    contexts, blocks = context_and_block(watermark, tokens, starts)
    totals = np.zeros(len(prf_keys), dtype=np.int64)
    plain, raw = np.zeros(len(prf_keys)), np.zeros(len(prf_keys))
    if starts.size:
        for keys, scores in scores_under_each(watermark, prf_keys, contexts, blocks):
            totals[keys] = weighted_total(null, scores[:, weighted], kept)
            plain[keys] = scores.sum(axis=1)
            raw[keys] = watermark.standardize(scores[:, weighted]) @ kept
    best = int(np.argmax(totals))
    tries = len(prf_keys) * phases
    spread = float(np.sqrt(np.sum(kept**2))) or 1.0
    count = starts.size
    total = float(plain[best])
    return WeightedEvidence(
        Evidence(corrected(weighted_log10_tail(null, kept, int(totals[best])), tries), raw[best] / spread),
        Evidence(corrected(watermark.log10_p_value(total, count), tries), watermark.z_score(total, count)),
        scored_blocks=count,
        weighted_blocks=int(weighted.sum()),
        hypotheses=tries,
        phase=phase,
        pool_key=best,
    )
