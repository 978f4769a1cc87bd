"""Scores block by block, for the reader of a result: where in a document the signal is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.detectors import Tokens
from ttmark.detect_service.pipeline import Finding, FoundSegment
from ttmark.shared.keys.unlocked import UnlockedKey
from ttmark.shared.watermark import DirectEvidence, Watermark
from ttmark.shared.watermark.detectors.alignment import alignment_path
from ttmark.shared.watermark.detectors.positions import position_scores


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
    finding: Finding, token_ids: Callable[[UnlockedKey], Tokens], beta: float
) -> list[BlockScores]:
    """The blocks that a finding rests on: one run of blocks, or one for each segment and the rest.

    Direct detection shows the blocks that it sums. Everything else, the one question included,
    shows the blocks of the best alignment: read at one boundary alone, what follows an inserted word would
    look like text without a watermark. Outside of segments the blocks are those of the finding's own key.

    Args:
        beta: what the alignment pays for a skipped token.
    """
    evidence = finding.evidence
    size = finding.key.profile.block_size
    if isinstance(evidence, DirectEvidence):
        return [BlockScores(evidence.starts, evidence.scores, size)]

    known: dict[tuple[str, int, int], BlockScores] = {}

    def aligned(made_with: Finding | FoundSegment) -> BlockScores:
        key, version = made_with.key, made_with.version
        name = key.key_id, version.version, made_with.pool_key
        if name not in known:
            prf_key = version.prf_keys[made_with.pool_key]
            known[name] = _aligned_blocks(key.profile.watermark(), prf_key, token_ids(key), beta)
        return known[name]

    runs = []
    rest = aligned(finding)
    for segment in finding.segments or ():
        run = aligned(segment)
        runs.append(_where(run, (run.starts >= segment.start) & (run.starts + run.size <= segment.end)))
        rest = _where(rest, (rest.starts + size <= segment.start) | (rest.starts >= segment.end))
    return sorted([rest, *runs], key=lambda run: int(run.starts[0]) if run.starts.size else 0)


def _aligned_blocks(watermark: Watermark, prf_key: bytes, tokens: Tokens, beta: float) -> BlockScores:
    scores = position_scores(watermark, prf_key, tokens)
    path = alignment_path(scores, watermark.block_size, beta)
    return BlockScores(path + watermark.context_width, scores[path], watermark.block_size)


def _where(run: BlockScores, mask: NDArray[np.bool_]) -> BlockScores:
    return BlockScores(run.starts[mask], run.scores[mask], run.size)
