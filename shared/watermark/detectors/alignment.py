"""Aligned detection: finds the watermark again after edits, by a penalised alignment (paper, Algorithm 2).

A p-value comes from a null table or from decoys: what the statistic would have been under other keys. The
scores of a text under a random key are independent draws from the scheme's null, so decoys are drawn instead
of hashed. The generator is keyed by text and PRF key: every replica gives the same answer.
"""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.shared.watermark.detectors.block_scores import POSITION_SCORES, BlockRows, check_tokens
from ttmark.shared.watermark.interruption import STEPS, pause, paused_ranges
from ttmark.shared.watermark.schemes.watermark import Watermark

# Sequences from which on a step of all of them in numpy costs less than a step of each in Python.
_TOGETHER = 24


def aligned_score(scores: NDArray[np.float64], block_size: int, beta: float) -> float:
    """D of the paper's Eq. (7): D_t = max(D_{t-1} - beta, D_{t-r} + z_t), D_0 = 0.

    `scores` [n - r + 1] are the z of the blocks that start at each of n tokens.
    """
    return _best(scores, block_size, beta)[-1]


def alignment_path(scores: NDArray[np.float64], block_size: int, beta: float) -> NDArray[np.int64]:
    """The blocks that the best alignment keeps (paper, Algorithm 2, followed backwards).

    `scores` [positions] are those of the blocks that start at each position; the result [blocks]
    are positions, ascending and at least `block_size` apart.
    """
    best = _best(scores, block_size, beta)
    path = []
    t = len(best) - 1
    while t >= block_size:
        pause()
        low = max(block_size, t - STEPS)
        while t >= low:
            if best[t] == best[t - block_size] + float(scores[t - block_size]):
                t -= block_size
                path.append(t)
            else:
                t -= 1
    return np.array(path[::-1], dtype=np.int64)


def _before_blocks(block_size: int, beta: float) -> list[float]:
    """D of the first r positions, where no block has ended."""
    return [-beta * t for t in range(block_size)]


def _best(scores: NDArray[np.float64], block_size: int, beta: float) -> list[float]:
    """Eq. (7) for one sequence: D of all n positions."""
    best = _before_blocks(block_size, beta)
    for first, stop in paused_ranges(0, scores.size):
        for t, score in enumerate(scores[first:stop].tolist(), block_size + first):
            skipped, kept = best[t - 1] - beta, best[t - block_size] + score
            best.append(kept if kept >= skipped else skipped)
    return best


def aligned_score_of_each(scores: NDArray[np.float64], block_size: int, beta: float) -> NDArray[np.float64]:
    """`aligned_score` of each of the sequences [S, positions], of at least one position, to the bit: [S]."""
    if len(scores) < _TOGETHER:
        return np.array([aligned_score(own, block_size, beta) for own in scores])
    pause()
    return aligned_scores([scores.T], block_size, beta, len(scores))


def aligned_scores(
    chunks: Iterable[NDArray[np.float64]], block_size: int, beta: float, count: int
) -> NDArray[np.float64]:
    """`aligned_score` of `count` score sequences at once [count].

    The sequences arrive in chunks [positions, count]; the recurrence runs over positions.
    """
    best = [
        np.full(count, before) for before in _before_blocks(block_size, beta)
    ]  # D of the last r positions
    skipped, t = np.empty(count), block_size
    for chunk in chunks:
        for scores in chunk:
            oldest = best[t % block_size]
            np.subtract(best[(t - 1) % block_size], beta, out=skipped)
            oldest += scores
            np.maximum(oldest, skipped, out=oldest)
            t += 1
    return best[(t - 1) % block_size]


DECOYS = 1000
# Positions drawn at once: 256 x 1000 words are 2 MiB.
CHUNK_POSITIONS = 256


def decoy_scores(
    watermark: Watermark, prf_key: bytes, tokens: NDArray[np.int64], positions: int
) -> Iterator[NDArray[np.float64]]:
    """Standardised scores [chunk, DECOYS] of all `positions`, chunk after chunk."""
    digest = hashlib.blake2b(tokens.astype("<i8").tobytes(), key=prf_key, digest_size=16).digest()
    # Raw words, because their stream is fixed for all numpy versions and that of distributions is not.
    generator = np.random.Philox(key=np.frombuffer(digest, dtype="<u8"))
    for start in range(0, positions, CHUNK_POSITIONS):
        pause()
        rows = min(CHUNK_POSITIONS, positions - start)
        words = generator.random_raw(rows * DECOYS).reshape(rows, DECOYS)
        yield watermark.standardize(watermark.null.draw(words))


def decoy_log10_p(observed: float, decoys: NDArray[np.float64]) -> float:
    """log10 of (1 + #{decoys >= observed}) / (K + 1), exact for any statistic."""
    # Sums of equal scores in another order differ by rounding; such a tie counts for the decoy.
    reached = int(np.count_nonzero(decoys >= observed - 1e-9))
    return math.log10((1 + reached) / (1 + decoys.size))


BETA = 5.0


@dataclass(frozen=True, slots=True)
class AlignedEvidence:
    """What the aligned detector found in one text under one key."""

    log10_p: float
    z: float
    """z_emp, the paper's Eq. (8)."""
    tokens: int
    scored_blocks: int
    """Positions that were scored; blocks may start at each of them."""
    hypotheses: int


def detect_aligned(
    watermark: Watermark, prf_key: bytes, tokens: Sequence[int] | NDArray[np.int64], *, beta: float = BETA
) -> AlignedEvidence:
    """Test a text whose block boundaries may have moved; `beta` is the price of a skipped token.

    The p-value is read from the null table of the watermark where that covers beta and length, else
    it is that of 1,000 decoys and not below 1/1001. Raises ValueError for a negative beta, a bad token
    or a bad key.
    """
    check_beta(beta)
    tokens = check_tokens(tokens)
    rows = BlockRows.at_every_position(watermark, tokens)
    (score,) = aligned_totals(watermark, [prf_key], rows, beta).tolist()
    null = aligned_null(watermark, prf_key, tokens, rows.count, beta)
    return aligned_evidence(watermark, tokens, rows.count, score, null(score))


def check_beta(beta: float) -> None:
    """Raises ValueError unless `beta` is a price."""
    if not 0.0 <= beta < math.inf:
        raise ValueError(f"beta must be a number of at least 0, not {beta}")


def aligned_totals(
    watermark: Watermark, prf_keys: Sequence[bytes], rows: BlockRows, beta: float
) -> NDArray[np.float64]:
    """`aligned_score` of a text's every position under each key [keys]; 0 of a text without one."""
    totals = np.zeros(len(prf_keys))
    if rows.count:
        for keys, scores in rows.scores_under_each(watermark, prf_keys, POSITION_SCORES):
            totals[keys] = aligned_score_of_each(watermark.standardize(scores), watermark.block_size, beta)
    return totals


def aligned_evidence(
    watermark: Watermark, tokens: NDArray[np.int64], positions: int, score: float, log10_p: float
) -> AlignedEvidence:
    """What `score`, the `aligned_score` of so many positions of a text under one key, amounts to."""
    z = score / math.sqrt(tokens.size // watermark.block_size) if positions else 0.0
    return AlignedEvidence(log10_p, z, tokens.size, positions, 1)


def aligned_null(
    watermark: Watermark, prf_key: bytes, tokens: NDArray[np.int64], positions: int, beta: float
) -> Callable[[float], float]:
    """log10 p of the score of an alignment of so many positions, whatever the key is.

    From the null table of the watermark where that covers beta and length, else from decoys. `prf_key`
    chooses the decoys; those of one key serve for every key.
    """
    if positions == 0:
        return lambda _: 0.0
    if not needs_decoys(watermark, beta, positions):
        return lambda score: _from_table(watermark, beta, positions, score) or 0.0
    chunks = decoy_scores(watermark, prf_key, tokens, positions)
    decoys = aligned_scores(chunks, watermark.block_size, beta, DECOYS)
    return lambda score: decoy_log10_p(score, decoys)


def needs_decoys(watermark: Watermark, beta: float, positions: int) -> bool:
    """Whether a score over so many positions is held against decoys, for want of a null table."""
    return positions > 0 and _from_table(watermark, beta, positions, 0.0) is None


def _from_table(watermark: Watermark, beta: float, positions: int, score: float) -> float | None:
    table = watermark.null_table()
    if table is None or table.aligned.beta != beta:
        return None
    tokens = positions + watermark.block_size - 1
    return table.aligned.log10_p(watermark.block_size, tokens, score)
