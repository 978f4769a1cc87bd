"""The paper's statistics, each as a mode of its own: direct, aligned and localized detection."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ttmark.detect_service.verdict import Detector, Finding, Fired, FoundSegment, KeyVersion, Reach, Tokens
from ttmark.shared.schemas.detection import Phase
from ttmark.shared.watermark import DirectEvidence, LocalizedEvidence, Watermark, corrected, scored_positions
from ttmark.shared.watermark.detectors.alignment import (
    aligned_evidence,
    aligned_null,
    aligned_score_of_each,
    check_beta,
)
from ttmark.shared.watermark.detectors.block_scores import PositionRows, context_and_block, scores_under_each
from ttmark.shared.watermark.detectors.localized import Method, localized_evidence, segment_null
from ttmark.shared.watermark.detectors.segments import disjoint
from ttmark.shared.watermark.interruption import pause
from ttmark.shared.watermark.null_replacement import Redrawn, RowKeys

# Scores of positions that are made at once.
_ROWS = 65536


def direct(phase: Phase, log10_limit: float = -2.0) -> Detector:
    """`ttmark.shared.watermark.detect_direct` under every key of a pool.

    Args:
        log10_limit: the corrected p-value within which a key of a pool counts as found.
    """

    def look(versions: Sequence[KeyVersion], tokens: Tokens, redrawn: Redrawn | None = None) -> list[Finding]:
        watermark = versions[0][0].profile.watermark()
        phases = [
            _Phase.of(watermark, tokens, redrawn, offset)
            for offset in range(watermark.block_size if phase == "any" else 1)
        ]
        return [_direct(one, watermark, tokens, phases, log10_limit) for one in versions]

    return look


@dataclass(frozen=True, slots=True, eq=False)
class _Phase:
    """The blocks of a text whose boundaries begin at one offset.

    Attributes:
        starts: first token of each [N].
        contexts, blocks: [N, H] and [N, r].
        drawn: keys of those that are redrawn.
    """

    offset: int
    starts: NDArray[np.int64]
    contexts: NDArray[np.int64]
    blocks: NDArray[np.int64]
    drawn: RowKeys | None

    @classmethod
    def of(cls, watermark: Watermark, tokens: Tokens, redrawn: Redrawn | None, offset: int) -> "_Phase":
        starts = scored_positions(tokens, watermark.block_size, watermark.context_width, offset)
        drawn = RowKeys.of([(redrawn, starts - watermark.context_width)])
        return cls(offset, starts, *context_and_block(watermark, tokens, starts), drawn)

    def totals(self, watermark: Watermark, pool: Sequence[bytes]) -> NDArray[np.float64]:
        """The sum of the blocks' scores under each key [keys]."""
        totals = np.zeros(len(pool))
        for keys, scores in self._scores(watermark, pool):
            pause()
            totals[keys] = scores.sum(axis=1)
        return totals

    def scores_under(self, watermark: Watermark, prf_key: bytes) -> NDArray[np.float64]:
        """The blocks' scores under one key [N]."""
        ((_, scores),) = self._scores(watermark, [prf_key])
        own: NDArray[np.float64] = scores[0]
        return own

    def _scores(
        self, watermark: Watermark, pool: Sequence[bytes]
    ) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Some keys at a time, and the blocks' scores under them [keys, N]."""
        return scores_under_each(watermark, pool, self.contexts, self.blocks, row_keys=self.drawn)


def _direct(
    made_with: KeyVersion, watermark: Watermark, tokens: Tokens, phases: Sequence[_Phase], log10_limit: float
) -> Finding:
    """What the keys of one version say at the phases."""
    pool = made_with[1].prf_keys
    tries, null_log10_p = len(pool) * len(phases), 0.0
    found: list[tuple[float, int, int]] = []  # p-values, phases, and keys
    for phase in phases:
        totals = phase.totals(watermark, pool)
        p_value = partial(watermark.log10_p_value, blocks=phase.starts.size)
        if phase.offset == 0:
            null_log10_p = p_value(float(totals[0]))
        found += [
            (own, phase.offset, number) for own, number in _falling(totals, p_value, tries, log10_limit)
        ]
    found.sort()
    log10_p, offset, best = found[0]
    smallest = {number: own for own, _, number in reversed(found)}
    starts, scores = phases[offset].starts, phases[offset].scores_under(watermark, pool[best])
    evidence = DirectEvidence.of_scores(watermark, tokens, starts, scores, phase=offset, phases=1)
    return Finding(
        *made_with,
        pool_key=best,
        fired=_fired(made_with, ((own, number) for number, own in smallest.items() if own <= log10_limit)),
        evidence=replace(evidence, log10_p=log10_p, hypotheses=tries),
        log10_p=log10_p,
        hypotheses=tries,
        reach=(Reach(watermark, max(one.starts.size for one in phases), tries),),
        null_log10_p=null_log10_p,
    )


def aligned(beta: float, log10_limit: float = -2.0) -> Detector:
    """`ttmark.shared.watermark.detect_aligned` under every key of a pool.

    Args:
        log10_limit: the corrected p-value within which a key of a pool counts as found.

    Raises:
        ValueError: `beta` is no price.
    """
    check_beta(beta)

    def look(versions: Sequence[KeyVersion], tokens: Tokens, redrawn: Redrawn | None = None) -> list[Finding]:
        watermark = versions[0][0].profile.watermark()
        rows = PositionRows.of(watermark, tokens, redrawn)
        return [_aligned(one, watermark, tokens, rows, beta, log10_limit) for one in versions]

    return look


def _aligned(
    made_with: KeyVersion,
    watermark: Watermark,
    tokens: Tokens,
    rows: PositionRows,
    beta: float,
    log10_limit: float,
) -> Finding:
    """What the keys of one version say of a text's positions."""
    pool = made_with[1].prf_keys
    totals = np.zeros(len(pool))
    if rows.positions:
        for keys, scores in rows.scores_under_each(watermark, pool, _ROWS):
            totals[keys] = aligned_score_of_each(scores, watermark.block_size, beta)
    null = aligned_null(watermark, pool[0], tokens, rows.positions, beta)
    found = _falling(totals, null, len(pool), log10_limit)
    log10_p, best = found[0]
    evidence = aligned_evidence(watermark, tokens, rows.positions, float(totals[best]), log10_p)
    return Finding(
        *made_with,
        pool_key=best,
        fired=_fired(made_with, (one for one in found if one[0] <= log10_limit)),
        evidence=replace(evidence, hypotheses=len(pool)),
        log10_p=log10_p,
        hypotheses=len(pool),
        reach=(Reach(watermark, -(-rows.positions // watermark.block_size), len(pool)),),
        null_log10_p=null(float(totals[0])),
    )


def localized(method: Method, log10_e_limit: float = -2.0) -> Detector:
    """`ttmark.shared.watermark.detect_localized` under every key of a pool.

    Args:
        log10_e_limit: of the corrected E-values of passages.
    """

    def look(versions: Sequence[KeyVersion], tokens: Tokens, redrawn: Redrawn | None = None) -> list[Finding]:
        watermark = versions[0][0].profile.watermark()
        rows = PositionRows.of(watermark, tokens, redrawn)
        return [_localized(one, watermark, tokens, rows, method, log10_e_limit) for one in versions]

    return look


def _localized(
    made_with: KeyVersion,
    watermark: Watermark,
    tokens: Tokens,
    rows: PositionRows,
    method: Method,
    log10_e_limit: float,
) -> Finding:
    """The passages of a text under the keys of one version."""
    pool, width = made_with[1].prf_keys, watermark.context_width
    step = math.log10(len(pool))
    null = segment_null(watermark, method, pool[0], tokens, rows.positions)
    found: list[LocalizedEvidence] = []
    for _, scores in rows.scores_under_each(watermark, pool, _ROWS):
        for own in scores:
            pause()
            found.append(localized_evidence(watermark, tokens, own, method, log10_e_limit - step, null))
    best = min(range(len(found)), key=lambda number: found[number].log10_p)
    log10_p = corrected(found[best].log10_p, len(pool))
    by_e_value = sorted(
        # Passages may share the context that the end of one reaches into, as under one key they may.
        (
            FoundSegment(one.start, one.end - width, one.log10_e + step, *made_with, number)
            for number, of_key in enumerate(found)
            for one in of_key.segments
        ),
        key=lambda one: one.log10_e,
    )
    strongest = [(one.segments[0].log10_e + step, number) for number, one in enumerate(found) if one.segments]
    return Finding(
        *made_with,
        pool_key=best,
        fired=_fired(made_with, strongest),
        evidence=replace(found[best], log10_p=log10_p, hypotheses=len(pool)),
        log10_p=log10_p,
        hypotheses=len(pool),
        reach=(Reach(watermark, -(-rows.positions // watermark.block_size), len(pool)),),
        null_log10_p=found[0].log10_p,
        segments=tuple(replace(one, end=one.end + width) for one in disjoint(by_e_value)),
    )


def _fired(made_with: KeyVersion, found: Iterable[tuple[float, int]]) -> tuple[Fired, ...]:
    """Of corrected p-values or E-values, and numbers of keys."""
    return tuple(Fired(own, *made_with, number) for own, number in sorted(found))


def _falling(
    totals: NDArray[np.float64], log10_p: Callable[[float], float], tries: int, log10_limit: float
) -> Sequence[tuple[float, int]]:
    """Corrected log10 p-values and keys, from sums of scores [keys]: the best, and those within the limit.

    p falls as a sum grows, so that few tails are needed.
    """
    found: list[tuple[float, int]] = []
    for number in np.argsort(-totals, kind="stable").tolist():
        own = corrected(log10_p(float(totals[number])), tries)
        if found and own > log10_limit:
            break
        found.append((own, number))
        if own > log10_limit:
            break
    return found
