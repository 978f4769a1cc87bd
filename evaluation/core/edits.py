"""Detection after random edits: aligned beside direct, at the same true false-positive rate."""

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from evaluation.core.aligned_null import Proposal, sample_aligned, tail_bounds
from evaluation.core.generation import document_scores
from evaluation.core.language_model import CONFIDENT_SHARE
from evaluation.core.markdown import mean_interval, table
from evaluation.core.tilting import null_scores
from shared.watermark import Watermark
from shared.watermark.detectors.aligned import BETA
from shared.watermark.schemes.registry import build_scheme

Edit = Literal["mixed", "substitute", "delete", "insert"]
EDITS: tuple[Edit, ...] = get_args(Edit)
FALSE_POSITIVE_RATE = 1e-3
RATES = (0.1, 0.2, 0.3)
# At 400 tokens nothing survives 30 % of edits; the longest shows how the detectors differ there.
PAIRED_LENGTHS = (400, 1000, 4000)
BETAS = (1.0, 2.0, 3.0, 5.0, 8.0, 20.0)
# A tilt of this many standard errors of the mean score samples a rate of 1e-3 well.
TILT, DRAWS, ENOUGH = 4.2, 8000, 100
Scores = NDArray[np.float64]


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
    """TPR at the false-positive rate after edits of every kind, by scheme and beta, r = 2."""
    rows = []
    cells: list[tuple[Edit, float]] = [(edit, rate) for edit in EDITS for rate in RATES]
    for scheme in schemes:
        watermark = Watermark(scheme, 2)
        columns = _edited_documents(watermark, _blocks(watermark, tokens, documents, seed), cells, seed)
        limits = [_thresholds(watermark, beta, columns) for beta in BETAS]
        for (edit, rate), texts in zip(cells, columns, strict=True):
            found = [_direct_found(watermark, texts)]
            found += [_aligned_found(texts, *pair) for pair in zip(BETAS, limits, strict=True)]
            rows.append([scheme, f"{edit} {rate:.0%}", *[f"{100 * hits.mean():.0f}" for hits in found]])
    return table(["scheme", "edit", "direct", *[f"aligned, β = {beta:g}" for beta in BETAS]], rows)


def paired_table(schemes: list[str], lengths: Sequence[int], documents: int, seed: int) -> str:
    """Aligned against direct detection of the same documents after mixed edits, r = 2, with intervals."""
    rows = []
    cells: list[tuple[Edit, float]] = [("mixed", rate) for rate in RATES]
    for scheme in schemes:
        watermark = Watermark(scheme, 2)
        whole = _blocks(watermark, max(lengths), documents, seed)
        for tokens in lengths:
            start = whole[:, : tokens // 2 - watermark.warmup_blocks]
            columns = _edited_documents(watermark, start, cells, seed)
            limits = _thresholds(watermark, BETA, columns)
            for (_, rate), texts in zip(cells, columns, strict=True):
                direct, aligned = _direct_found(watermark, texts), _aligned_found(texts, BETA, limits)
                gain, low, high = mean_interval(100.0 * aligned - 100.0 * direct)
                verdict = "aligned" if low > 0.0 else "direct" if high < 0.0 else "no difference seen"
                rates = [f"{100 * hits.mean():.1f}" for hits in (direct, aligned)]
                rows.append(
                    [
                        scheme,
                        tokens,
                        f"{rate:.0%}",
                        *rates,
                        f"{gain:+.1f} ({low:+.1f} to {high:+.1f})",
                        verdict,
                    ]
                )
    header = ["scheme", "tokens", "mixed edits", "direct, %", "aligned, %", "difference, points", "better"]
    return table(header, rows)


def _blocks(watermark: Watermark, tokens: int, documents: int, seed: int) -> Scores:
    """Standardised scores [documents, blocks] of watermarked documents of `tokens` tokens."""
    scheme = build_scheme(watermark.scheme, watermark.parameters)
    count = tokens // 2 - watermark.warmup_blocks
    return watermark.standardize(document_scores(scheme, 2, documents, count, seed, CONFIDENT_SHARE))


def _edited_documents(
    watermark: Watermark, blocks: Scores, cells: Sequence[tuple[Edit, float]], seed: int
) -> list[list[Scores]]:
    """For each cell the position scores of the same documents after its edits."""
    rng = np.random.default_rng(seed)
    tokens = 2 * (blocks.shape[1] + watermark.warmup_blocks)
    return [
        [position_scores_after(watermark, row, edited(tokens, edit, rate, rng), rng) for row in blocks]
        for edit, rate in cells
    ]


def _direct_found(watermark: Watermark, texts: list[Scores]) -> Scores:
    """1.0 for each text that direct detection finds, else 0.0."""
    found = []
    for scores in texts:
        kept = scores[-watermark.context_width % 2 :: 2]
        log10_p = watermark.log10_p_of_z_sum(float(kept.sum()), kept.size)
        found.append(float(log10_p <= math.log10(FALSE_POSITIVE_RATE)))
    return np.array(found)


def _thresholds(watermark: Watermark, beta: float, columns: list[list[Scores]]) -> dict[int, float]:
    """The score D that unwatermarked text of each length reaches at the false-positive rate."""
    lengths = sorted({scores.size + 1 for texts in columns for scores in texts})
    proposal = Proposal(theta=TILT / math.sqrt(lengths[len(lengths) // 2] / 2), rho=0.03)
    limits = {}
    for length, sample in sample_aligned(watermark, beta, proposal, lengths, DRAWS, 7).items():
        values, probability, _, effective = tail_bounds(sample)
        last = int(np.searchsorted(probability, FALSE_POSITIVE_RATE)) - 1
        if effective[last] < ENOUGH:
            raise ValueError(f"{effective[last]:.0f} effective draws are too few at {length} tokens")
        limits[length] = float(values[last])
    return limits


def _aligned_found(texts: list[Scores], beta: float, limits: dict[int, float]) -> Scores:
    """1.0 for each text that aligned detection finds, else 0.0; all texts in one recurrence."""
    sizes = np.array([scores.size for scores in texts])
    padded = np.zeros((sizes.max(), sizes.size))
    for column, scores in enumerate(texts):
        padded[: scores.size, column] = scores
    best = np.empty((sizes.max() + 2, sizes.size))  # D of Algorithm 2 after each token
    best[0], best[1] = 0.0, -beta
    for t in range(2, best.shape[0]):
        np.maximum(best[t - 1] - beta, best[t - 2] + padded[t - 2], out=best[t])
    final = best[sizes + 1, np.arange(sizes.size)]
    return np.array([float(d >= limits[n + 1] - 1e-9) for d, n in zip(final, sizes.tolist(), strict=True)])
