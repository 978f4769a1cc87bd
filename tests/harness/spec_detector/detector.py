"""From exported keys and a document of token ids to an answer of the three modes."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tests.harness.spec_detector.scheme import Scheme
from tests.harness.spec_detector.scores import (
    aligned_p,
    aligned_score,
    best_passage,
    direct,
    disjoint,
    document_p,
    passages,
    position_scores,
    scan_e,
)

Mode = Literal["direct", "aligned", "scan"]

TYPICAL = {
    ("exponential", 2): (24, 36, 48, 60, 71, 80, 94, 104, 114, 124, 134, 144, 152, 160, 170, 180, 188, 196),
    ("binomial-30-0.5", 2): (12, 23, 35, 50, 67, 78, 93, 107, 121, 143, 164, 175, 192),
    ("binomial-12-0.5", 2): (10, 24, 36, 59, 84, 100, 126, 141, 163, 184),
}
"""Tokens for 1, 2, ... decades by the score of a block and its size (docs/spec.md, Verdicts)."""


@dataclass(frozen=True)
class Answer:
    """What the service answers as well.

    Attributes:
        fired: keys of the version's pool that reach the rate by themselves.
        tokens_needed: where the document is too short under every profile, else None.
        tokens_typical: likewise.
        segments: of `scan`, first and exclusive last token and log10 E.
    """

    log10_p: float
    hypotheses: int
    key_id: str
    version: int
    pool_key: int
    fired: int
    tokens_needed: int | None
    tokens_typical: int | None
    segments: list[tuple[int, int, float]]


@dataclass(frozen=True)
class Reach:
    """One version on one reading: blocks that count, and what a p-value is multiplied by for the version."""

    scheme: Scheme
    blocks: int
    count: float


@dataclass(frozen=True)
class _Try:
    """One version: log10 p of each key times phases x pool, E-values of spans times pool."""

    key_id: str
    version: int
    of_keys: list[float]
    reach: Reach
    spans: list[tuple[float, int, int]]


def detect(
    exports: Sequence[dict[str, Any]],
    tokens: Sequence[int],
    mode: Mode,
    fpr: float,
    *,
    any_phase: bool = False,
) -> Answer:
    """The best of all versions of files of `ttmark keys export`, in the order of their key ids."""
    versions = sum("prf_keys" in version for exported in exports for version in exported["versions"])
    others, limit = math.log10(versions), math.log10(fpr)
    every = [
        one
        for exported in exports
        for one in _versions(exported, tokens, mode, limit - others, any_phase=any_phase)
    ]
    best = min(every, key=lambda one: min(one.of_keys))
    corrected = [min(0.0, p + others) for p in best.of_keys]
    needed, typical = too_short([one.reach for one in every], limit - others) or (None, None)
    spans = disjoint([(e + others, start, end) for one in every for e, start, end in one.spans])
    return Answer(
        log10_p=min(corrected),
        hypotheses=int(sum(one.reach.count for one in every)),
        key_id=best.key_id,
        version=best.version,
        pool_key=corrected.index(min(corrected)),
        fired=sum(p <= limit for p in corrected),
        tokens_needed=needed,
        tokens_typical=typical,
        segments=sorted((start, end, e) for e, start, end in spans if e <= limit),
    )


def _versions(
    exported: dict[str, Any], tokens: Sequence[int], mode: Mode, log10_limit: float, *, any_phase: bool
) -> Iterator[_Try]:
    scheme = Scheme(exported["profile"])
    for version in reversed(exported["versions"]):
        if "prf_keys" not in version:
            continue
        keys = [bytes.fromhex(key) for key in version["prf_keys"]]
        spans: list[tuple[float, int, int]] = []
        phases = range(scheme.size if any_phase and mode == "direct" else 1)
        blocks = max(0, -(-(len(tokens) - scheme.width - scheme.size + 1) // scheme.size))
        if mode == "direct":
            found = [[direct(scheme, key, tokens, phase) for phase in phases] for key in keys]
            blocks = max(scored for _, scored in found[0])
            alone = [min(log10_p for log10_p, _ in of_key) for of_key in found]
        elif mode == "aligned":
            p = aligned_p(scheme, keys[0], tokens)
            alone = [p(aligned_score(position_scores(scheme, key, tokens), scheme.size)) for key in keys]
        else:
            log10_e = scan_e(scheme, keys[0], tokens)
            z = [position_scores(scheme, key, tokens) for key in keys]
            alone = [document_p(log10_e(best_passage(one, scheme.size)[0])) for one in z]
            limit = log10_limit - math.log10(len(keys))
            spans = [span for one in z for span in passages(one, scheme.size, log10_e, limit)]
        count = len(phases) * len(keys)
        of_keys = [min(0.0, log10_p + math.log10(count)) for log10_p in alone]
        found_spans = [(e + math.log10(len(keys)), a, b + scheme.width) for e, a, b in disjoint(spans)]
        reach = Reach(scheme, blocks, count)
        yield _Try(exported["key_id"], version["version"], of_keys, reach, found_spans)


def too_short(every: Sequence[Reach], limit: float) -> tuple[int, int] | None:
    """The least tokens that could be enough and that half of marked texts need, or None."""
    needed, typical = [], []
    for one in every:
        scheme, null, blocks = one.scheme, one.scheme.null, 1
        while null.tail(blocks * null.best, blocks) + math.log10(one.count) > limit:
            blocks += 1
        decades = max(1, math.ceil(math.log10(one.count) - limit))
        usual = min(
            _entry(row, decades) for name, row in TYPICAL.items() if _measured(scheme) in (name, None)
        )
        before = -(-scheme.width // scheme.size)
        if one.blocks >= blocks and one.blocks >= usual // scheme.size - before:
            return None
        needed.append(scheme.size * (before + blocks))
        typical.append(usual)
    return min(needed), min(typical)


def _measured(scheme: Scheme) -> tuple[str, int] | None:
    name = (scheme.null.name, scheme.size)
    return name if name in TYPICAL else None


def _entry(row: Sequence[int], decades: int) -> int:
    return row[decades - 1] if decades <= len(row) else row[-1]
