"""The core's direct detector over many documents at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.detectors import BatchDetector, Pool, Tokens, Tried, Way, batches
from ttmark.shared.schemas.detection import Phase
from ttmark.shared.watermark import DirectEvidence, Watermark, corrected, key_lanes, scored_positions
from ttmark.shared.watermark.detectors.tokens import context_and_block
from ttmark.shared.watermark.pauses import pause
from ttmark.shared.watermark.pool_scores import scores_under_each
from ttmark.shared.watermark.redrawn import Redrawn, RowKeys

# Rows that are scored together: enough to hide the cost of a call, few enough to stay in the cache.
_ROWS = 8192

Starts = NDArray[np.int64]
Scores = NDArray[np.float64]
PhaseFactors = Callable[[int], Sequence[float]]
"""Number of phases that are tried -> what a p-value at each is multiplied by: their inverses sum to 1."""


def evenly(phases: int) -> Sequence[float]:
    """Every phase pays for all of them (Bonferroni)."""
    return [phases] * phases


def direct(
    phase_of_each: Sequence[Phase], log10_limit: float = -2.0, factors: PhaseFactors = evenly
) -> BatchDetector:
    """`ttmark.shared.watermark.detect_direct`, with the blocks of many documents scored in one call.

    A call over the 200 blocks of a usual document costs about as much as one over 8,000.

    Args:
        phase_of_each: the phase of each document that the detector will be given.
        log10_limit: the corrected p-value within which a key of a pool counts as found.
        factors: how the phases share the rate.
    """

    def detect_all(
        watermark: Watermark,
        versions: Sequence[Pool],
        documents: Sequence[Tokens],
        redrawn: Sequence[Redrawn | None] | None = None,
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
            rows = _Rows(watermark, documents[batch], placed[batch], redrawn and redrawn[batch])
            by_version = [rows.tried(pool, log10_limit, factors) for pool in versions]
            tried += [[found[index] for found in by_version] for index in range(len(documents[batch]))]
        return tried

    return detect_all


class _Rows:
    """The blocks of some documents at all of their phases, to be scored together under any keys."""

    def __init__(
        self,
        watermark: Watermark,
        documents: Sequence[Tokens],
        placed: Sequence[Sequence[Starts]],
        redrawn: Sequence[Redrawn | None] | None,
    ) -> None:
        rows = [
            context_and_block(watermark, tokens, starts)
            for tokens, phases in zip(documents, placed, strict=True)
            for starts in phases
        ]
        self._watermark = watermark
        self._documents = documents
        self._placed = placed
        self._contexts = np.concatenate([context for context, _ in rows])
        self._blocks = np.concatenate([block for _, block in rows])
        self._sizes = np.array([len(block) for _, block in rows], dtype=np.int64)
        self._row_keys = RowKeys.of(
            [
                (one, starts - watermark.context_width)
                for one, phases in zip(redrawn or [None] * len(placed), placed, strict=True)
                for starts in phases
            ]
        )

    def tried(self, pool: Pool, log10_limit: float, factors: PhaseFactors) -> list[Tried]:
        """What the keys of one version say about each document."""
        if len(pool) == 1:
            chosen = [_Chosen(1, 0, None, ()) for _ in self._documents]
        else:
            ends = np.cumsum([len(phases) for phases in self._placed])[:-1]
            totals = np.split(self._totals(pool), ends, axis=1)
            chosen = [
                _choose(self._watermark, phases, of_document, log10_limit, factors)
                for phases, of_document in zip(self._placed, totals, strict=True)
            ]
        scores = iter(np.split(self._scores(pool, chosen), np.cumsum(self._sizes)[:-1]))
        return [
            _try(
                self._watermark,
                tokens,
                phases,
                [next(scores) for _ in phases],
                choice,
                log10_limit,
                factors,
            )
            for tokens, phases, choice in zip(self._documents, self._placed, chosen, strict=True)
        ]

    def _totals(self, pool: Pool) -> Scores:
        """The sum of each phase's scores under each key [keys, phases of all documents]."""
        totals = np.zeros((len(pool), self._sizes.size))
        filled = np.flatnonzero(self._sizes)
        firsts = (np.cumsum(self._sizes) - self._sizes)[filled]
        if filled.size:
            rows = self._contexts, self._blocks
            for keys, scores in scores_under_each(self._watermark, pool, *rows, row_keys=self._row_keys):
                totals[keys, filled] = np.add.reduceat(scores, firsts, axis=1)
        return totals

    def _scores(self, pool: Pool, chosen: Sequence["_Chosen"]) -> Scores:
        """The scores of all blocks [N], each document's under its own key."""
        lanes = np.array([key_lanes(pool[choice.key]) for choice in chosen])
        phases = [len(phases) for phases in self._placed]
        of_each = np.repeat(np.repeat(lanes, phases, axis=0), self._sizes, axis=0)
        if self._row_keys:
            self._row_keys.put_into(of_each)
        return self._watermark.score(of_each, self._contexts, self._blocks)


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A key of a pool.

    Attributes:
        of: so many keys.
        first_log10_p: p-value under the pool's first key at the first phase, where that is known already.
        fired: log10 p-values of the keys within the limit.
    """

    of: int
    key: int
    first_log10_p: float | None
    fired: tuple[float, ...]


def _choose(
    watermark: Watermark,
    phases: Sequence[Starts],
    totals: Scores,
    log10_limit: float,
    factors: PhaseFactors,
) -> _Chosen:
    """The key with the smallest p-value at any phase, from the sums of a document's scores [keys, phases].

    At one phase p falls as the sum grows, so that few tails are needed.
    """
    pause()
    smallest: dict[int, float] = {}
    for starts, sums, factor in zip(phases, totals.T, factors(len(phases)), strict=True):
        for key in np.argsort(-sums, kind="stable").tolist():
            log10_p = watermark.log10_p_value(float(sums[key]), starts.size)
            own = log10_p + math.log10(factor * len(totals))
            smallest[key] = min(own, smallest.get(key, math.inf))
            if own > log10_limit:
                break
    return _Chosen(
        len(totals),
        min(smallest, key=lambda key: (smallest[key], key)),
        watermark.log10_p_value(float(totals[0, 0]), phases[0].size),
        tuple(sorted(own for own in smallest.values() if own <= log10_limit)),
    )


def _try(
    watermark: Watermark,
    tokens: Tokens,
    phases: Sequence[Starts],
    scores: Sequence[Scores],
    chosen: _Chosen,
    log10_limit: float,
    factors: PhaseFactors,
) -> Tried:
    """The best of a document's phases under the key that was chosen."""
    pause()
    alone = [
        DirectEvidence.of_scores(watermark, tokens, starts, of_phase, phase=phase, phases=1)
        for phase, (starts, of_phase) in enumerate(zip(phases, scores, strict=True))
    ]
    tries = [chosen.of * factor for factor in factors(len(alone))]
    own = [corrected(one.log10_p, of_phase) for one, of_phase in zip(alone, tries, strict=True)]
    log10_p = min(own)
    return Tried(
        replace(alone[own.index(log10_p)], log10_p=log10_p, hypotheses=chosen.of * len(alone)),
        first_log10_p=alone[0].log10_p if chosen.first_log10_p is None else chosen.first_log10_p,
        ways=(Way(max(one.scored_blocks for one in alone), min(tries)),),
        pool_key=chosen.key,
        fired=chosen.fired or ((log10_p,) if log10_p <= log10_limit else ()),
    )
