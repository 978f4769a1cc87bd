"""Detection after random edits: aligned beside direct, at the same true false-positive rate."""

import math
from typing import Literal, get_args

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from evaluation.core.aligned_null import Proposal, sample_aligned, tail_bounds
from evaluation.core.generation import document_scores
from evaluation.core.language_model import CONFIDENT_SHARE
from evaluation.core.markdown import table
from evaluation.core.tilting import null_scores
from shared.watermark import Watermark
from shared.watermark.detectors.alignment import aligned_score
from shared.watermark.schemes.registry import build_scheme

Edit = Literal["mixed", "substitute", "delete", "insert"]
EDITS: tuple[Edit, ...] = get_args(Edit)
FALSE_POSITIVE_RATE = 1e-3
RATES = (0.1, 0.2, 0.3)
BETAS = (1.0, 2.0, 3.0, 5.0, 8.0, 20.0)
# At this tilt a rate of 1e-3 is well sampled at a few hundred tokens.
PROPOSAL, DRAWS = Proposal(theta=0.3, rho=0.03), 8000


def edited(tokens: int, edit: Edit, rate: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """The original position of each token of the edited text, -1 for a new token.

    `mixed` makes each edit a substitution, a deletion or an insertion with equal chances.
    """
    kinds = np.where(rng.random(tokens) < rate, rng.integers(1, len(EDITS), tokens), 0)
    if edit != "mixed":
        kinds = np.where(kinds > 0, EDITS.index(edit), 0)
    substituted, deleted, inserted = (kinds == EDITS.index(name) for name in EDITS[1:])
    origin = np.where(substituted, -1, np.arange(tokens))
    copies = np.where(deleted, 0, np.where(inserted, 2, 1))
    result = np.repeat(origin, copies)
    result[np.cumsum(copies)[inserted] - 1] = -1
    return result


def position_scores_after(
    watermark: Watermark, blocks: NDArray[np.float64], origin: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """Scores of all positions: a block keeps its score where its context and tokens are intact."""
    r, width = watermark.block_size, watermark.context_width
    positions = origin.size - width - r + 1
    scores = null_scores(watermark.null, rng, (positions,))
    follows = (origin[:-1] >= 0) & (np.diff(origin) == 1)
    intact = sliding_window_view(follows, width + r - 1).all(axis=1)
    start = origin[:positions] + width
    block = start // r - watermark.warmup_blocks
    kept = intact & (start % r == 0) & (block >= 0) & (block < blocks.size)
    scores[kept] = blocks[block[kept]]
    return scores


def edits_table(schemes: list[str], tokens: int, documents: int, seed: int) -> str:
    """TPR at FPR 1e-3 after edits, by scheme and beta, r = 2."""
    rows = []
    for scheme in schemes:
        watermark, rng = Watermark(scheme, 2), np.random.default_rng(seed)
        count = tokens // 2 - watermark.warmup_blocks
        raw = document_scores(build_scheme(scheme, {}), 2, documents, count, seed, CONFIDENT_SHARE)
        blocks = watermark.standardize(raw)
        cells: list[tuple[Edit, float]] = [(edit, rate) for edit in EDITS for rate in RATES]
        texts = [
            [position_scores_after(watermark, row, edited(tokens, edit, rate, rng), rng) for row in blocks]
            for edit, rate in cells
        ]
        lengths = sorted({scores.size + 1 for column in texts for scores in column})
        limits = [_thresholds(watermark, beta, lengths) for beta in BETAS]
        for (edit, rate), column in zip(cells, texts, strict=True):
            direct = np.mean([_direct_found(watermark, scores) for scores in column])
            aligned = [_aligned_rate(column, *pair) for pair in zip(BETAS, limits, strict=True)]
            rates = [f"{100 * found:.0f}" for found in [float(direct), *aligned]]
            rows.append([scheme, f"{edit} {rate:.0%}", *rates])
    return table(["scheme", "edit", "direct", *[f"aligned, β = {beta:g}" for beta in BETAS]], rows)


def _direct_found(watermark: Watermark, scores: NDArray[np.float64]) -> bool:
    kept = scores[-watermark.context_width % 2 :: 2]
    log10_p = watermark.log10_p_of_z_sum(float(kept.sum()), kept.size)
    return log10_p <= math.log10(FALSE_POSITIVE_RATE)


def _thresholds(watermark: Watermark, beta: float, lengths: list[int]) -> dict[int, float]:
    """The score D that unwatermarked text of each length reaches at the false-positive rate."""
    limits = {}
    for length, sample in sample_aligned(watermark, beta, PROPOSAL, lengths, DRAWS, 7).items():
        values, probability, _, _ = tail_bounds(sample)
        limits[length] = float(values[np.searchsorted(probability, FALSE_POSITIVE_RATE) - 1])
    return limits


def _aligned_rate(texts: list[NDArray[np.float64]], beta: float, limits: dict[int, float]) -> float:
    found = [aligned_score(scores, 2, beta) >= limits[scores.size + 1] - 1e-9 for scores in texts]
    return float(np.mean(found))
