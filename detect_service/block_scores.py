"""Scores block by block, for the reader of a result: where in a document the signal is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from detect_service.detectors import Tokens
from detect_service.pipeline import Finding
from shared.keys import UnlockedKey, UnlockedVersion
from shared.watermark import DirectEvidence
from shared.watermark.detectors.aligned import BETA
from shared.watermark.detectors.positions import position_scores


@dataclass(frozen=True, slots=True, eq=False)
class BlockScores:
    """Disjoint blocks in order.

    Attributes:
        starts: [blocks] first token of each.
        scores: [blocks] standardised; mean 0 and variance 1 without a watermark.
        size: tokens in a block.
    """

    starts: NDArray[np.int64]
    scores: NDArray[np.float64]
    size: int


def block_scores(
    finding: Finding, token_ids: Callable[[UnlockedKey], Tokens], beta: float = BETA
) -> list[BlockScores]:
    """The blocks that a finding rests on: one run of blocks, or one for each segment and the rest.

    Outside of segments the blocks are those of the finding's own key version.
    """
    evidence = finding.evidence
    size = finding.key.profile.block_size
    if isinstance(evidence, DirectEvidence):
        return [BlockScores(evidence.starts, evidence.scores, size)]

    known: dict[tuple[str, int], BlockScores] = {}

    def aligned(key: UnlockedKey, version: UnlockedVersion) -> BlockScores:
        name = key.key_id, version.version
        if name not in known:
            known[name] = _aligned_blocks(key, version, token_ids(key), beta)
        return known[name]

    runs = []
    rest = aligned(finding.key, finding.version)
    for segment in finding.segments or ():
        run = aligned(segment.key, segment.version)
        runs.append(_where(run, (run.starts >= segment.start) & (run.starts + run.size <= segment.end)))
        rest = _where(rest, (rest.starts + size <= segment.start) | (rest.starts >= segment.end))
    return sorted([rest, *runs], key=lambda run: int(run.starts[0]) if run.starts.size else 0)


def _aligned_blocks(key: UnlockedKey, version: UnlockedVersion, tokens: Tokens, beta: float) -> BlockScores:
    watermark = key.profile.watermark()
    scores = position_scores(watermark, version.prf_key, tokens)
    path = alignment_path(scores, watermark.block_size, beta)
    return BlockScores(path + watermark.context_width, scores[path], watermark.block_size)


def alignment_path(scores: NDArray[np.float64], block_size: int, beta: float) -> NDArray[np.int64]:
    """The blocks that the best alignment keeps (paper, Algorithm 2, followed backwards).

    `scores` [positions] are those of the blocks that start at each position; the result [blocks]
    are positions, ascending and at least `block_size` apart.
    """
    if scores.size == 0:
        return np.empty(0, np.int64)
    best = [-beta * t for t in range(block_size)]
    for t, score in enumerate(scores.tolist(), block_size):
        best.append(max(best[t - 1] - beta, best[t - block_size] + score))
    path = []
    t = len(best) - 1
    while t >= block_size:
        if best[t] == best[t - block_size] + float(scores[t - block_size]):
            t -= block_size
            path.append(t)
        else:
            t -= 1
    return np.array(path[::-1], dtype=np.int64)


def _where(run: BlockScores, mask: NDArray[np.bool_]) -> BlockScores:
    return BlockScores(run.starts[mask], run.scores[mask], run.size)
