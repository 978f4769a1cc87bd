"""The core's direct detector over many documents at once."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.detectors import BatchDetector, Tokens, Tried, batches
from ttmark.shared.schemas.detection import Phase
from ttmark.shared.watermark import DirectEvidence, Watermark, corrected, key_lanes, scored_positions
from ttmark.shared.watermark.detectors.tokens import context_and_block
from ttmark.shared.watermark.pauses import pause

# Rows that are scored together: enough to hide the cost of a call, few enough to stay in the cache.
_ROWS = 8192

Starts = NDArray[np.int64]


def direct(phase_of_each: Sequence[Phase]) -> BatchDetector:
    """`ttmark.shared.watermark.detect_direct`, with the blocks of many documents scored in one call.

    A call over the 200 blocks of a usual document costs about as much as one over 8,000.

    Args:
        phase_of_each: the phase of each document that the detector will be given.
    """

    def detect_all(
        watermark: Watermark, prf_keys: Sequence[bytes], documents: Sequence[Tokens]
    ) -> list[list[Tried]]:
        size, width = watermark.block_size, watermark.context_width
        placed: list[list[Starts]] = []
        for tokens, phase in zip(documents, phase_of_each, strict=True):
            placed.append([])
            for p in range(size if phase == "any" else 1):
                pause()
                placed[-1].append(scored_positions(tokens, size, width, p))
        tried: list[list[Tried]] = []
        for batch in batches([sum(map(len, starts)) for starts in placed], _ROWS):
            tried += _detect_direct(watermark, prf_keys, documents[batch], placed[batch])
        return tried

    return detect_all


def _detect_direct(
    watermark: Watermark,
    prf_keys: Sequence[bytes],
    documents: Sequence[Tokens],
    placed: Sequence[Sequence[Starts]],
) -> list[list[Tried]]:
    rows = [
        context_and_block(watermark, tokens, starts)
        for tokens, phases in zip(documents, placed, strict=True)
        for starts in phases
    ]
    contexts = np.concatenate([context for context, _ in rows])
    blocks = np.concatenate([block for _, block in rows])
    ends = np.cumsum([len(block) for _, block in rows])[:-1]
    # An iterator for each key: documents take their phases' scores [blocks] from it in turn.
    scores = [
        iter(np.split(watermark.score(key_lanes(prf_key), contexts, blocks), ends)) for prf_key in prf_keys
    ]
    return [
        [_try(watermark, tokens, phases, [next(of_key) for _ in phases]) for of_key in scores]
        for tokens, phases in zip(documents, placed, strict=True)
    ]


def _try(
    watermark: Watermark, tokens: Tokens, phases: Sequence[Starts], scores: Sequence[NDArray[np.float64]]
) -> Tried:
    """The best of a document's phases under one key."""
    pause()
    alone = [
        DirectEvidence.of_scores(watermark, tokens, starts, of_phase, phase=phase, phases=1)
        for phase, (starts, of_phase) in enumerate(zip(phases, scores, strict=True))
    ]
    count = len(alone)
    best = min(alone, key=lambda one: corrected(one.log10_p, count))
    return Tried(
        replace(best, log10_p=corrected(best.log10_p, count), hypotheses=count),
        first_log10_p=alone[0].log10_p,
        blocks=max(one.scored_blocks for one in alone),
    )
