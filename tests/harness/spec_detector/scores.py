"""Statistics of one sequence of tokens under one PRF key: p-values of the three modes."""

import hashlib
import json
import math
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.harness.spec_detector.prf import philox_words
from tests.harness.spec_detector.scheme import Scheme

TABLES = Path(__file__).parents[3] / "shared" / "watermark" / "tables"
BETA = 5.0
DECOYS = 1000
P = Callable[[float], float]
"""Score -> log10 p."""


def direct(scheme: Scheme, key: bytes, tokens: Sequence[int], phase: int) -> tuple[float, int]:
    """log10 p of the blocks at the boundaries of a phase, and how many were scored."""
    seen: set[tuple[int, ...]] = set()
    total, blocks = 0.0, 0
    for start in range(phase, len(tokens) - scheme.size + 1, scheme.size):
        context = tuple(tokens[start - scheme.width : start])
        if start < scheme.width or context in seen:
            continue
        seen.add(context)
        total += scheme.score(key, context, tuple(tokens[start : start + scheme.size]), 0)
        blocks += 1
    return (scheme.null.tail(total, blocks) if blocks else 0.0), blocks


def position_scores(scheme: Scheme, key: bytes, tokens: Sequence[int]) -> list[float]:
    """z of the block at every position from H on."""
    seen: Counter[tuple[int, ...]] = Counter()
    scores = []
    for start in range(scheme.width, len(tokens) - scheme.size + 1):
        row = tuple(tokens[start - scheme.width : start + scheme.size])
        score = scheme.score(key, row[: scheme.width], row[scheme.width :], seen[row])
        seen[row] += 1
        scores.append(scheme.standardised(score))
    return scores


def aligned_score(z: Sequence[float], r: int, beta: float = BETA) -> float:
    """D_n of Algorithm 2."""
    d = [0.0]
    for t in range(1, len(z) + r):
        d.append(max([d[t - 1] - beta, *([d[t - r] + z[t - r]] if t >= r else [])]))
    return d[-1]


def best_passage(
    z: Sequence[float], r: int, *, give_up: bool = True, drift: float | None = None
) -> tuple[float, int, int]:
    """The highest D of the local alignment, and the boundaries [a, b) of its segment."""
    drift, best = drift or 0.15 * r, (0.0, 0, 0)
    count = len(z) + r
    d, top, origin = [0.0] * count, [0.0] * count, list(range(count))
    for t in range(r, count):
        kept, skipped = d[t - r] + z[t - r] - drift, d[t - 1] - 5
        source = t - r if kept >= skipped else t - 1
        d[t], top[t], origin[t] = max(kept, skipped), top[source], origin[source]
        if d[t] <= 0 or (give_up and d[t] < top[t] - 100 * drift / r):
            d[t], top[t], origin[t] = 0.0, 0.0, t
        top[t] = max(top[t], d[t])
        if d[t] > best[0]:
            best = (d[t], origin[t], t)
    return best


def passages(z: Sequence[float], r: int, log10_e: P, limit: float) -> list[tuple[float, int, int]]:
    """log10 E and boundaries [a, b) of the segments within the limit that overlap no better one."""
    found, pending = [], [(0, len(z) + r - 1)]
    while pending:
        low, high = pending.pop()
        score, a, b = best_passage(z[low : high - r + 1], r) if high - low >= r else (0.0, 0, 0)
        if log10_e(score) > limit:
            continue
        mean = 0.15 * r + score / ((b - a) // r)
        inside = z[low + a : low + b - r + 1]
        _, inner_a, inner_b = best_passage(inside, r, drift=max(0.15 * r, mean / 2))
        found.append((log10_e(score), low + a + inner_a, low + a + inner_b))
        pending += [(low, low + a), (low + b, high)]
    return disjoint(found)


def disjoint(spans: Sequence[tuple[float, int, int]]) -> list[tuple[float, int, int]]:
    """The spans (log10 E, start, end), the smallest E first, that overlap no better one."""
    kept: list[tuple[float, int, int]] = []
    for span in sorted(spans, key=lambda one: one[0]):
        if all(span[2] <= other[1] or other[2] <= span[1] for other in kept):
            kept.append(span)
    return kept


def aligned_p(scheme: Scheme, first_key: bytes, tokens: Sequence[int]) -> P:
    """log10 p of D for these tokens; `first_key` is number 0 of the pool."""
    n, r = len(tokens) - scheme.width, scheme.size
    if n < r:
        return lambda _: 0.0
    table = _table(scheme)
    if table is None:
        return _decoy_p(scheme, first_key, tokens, lambda z: aligned_score(z, r))
    null = table["aligned"]
    return lambda d: _from_rows(null, r, n, d)


def scan_e(scheme: Scheme, first_key: bytes, tokens: Sequence[int]) -> P:
    """log10 E of a passage with this score."""
    n, r = len(tokens) - scheme.width, scheme.size
    if n < r:
        return lambda _: math.inf
    table = _table(scheme)
    if table is None:
        p = _decoy_p(scheme, first_key, tokens, lambda z: best_passage(z, r, give_up=False)[0])
        return lambda score: math.log10(-math.log1p(-min(10 ** p(score), 1 - 1e-16)))

    def log10_e(score: float) -> float:
        null = table["scan"]
        row = next((i for i, length in enumerate(null["lengths"]) if length >= n), len(null["lengths"]) - 1)
        levels = [i for i, least in enumerate(null["thresholds"][row]) if least <= score + 1e-9]
        if not levels:
            return math.inf
        e: float = null["log10_levels"][levels[-1]]
        if levels[-1] == len(null["thresholds"][row]) - 1:
            e -= null["decays"][row] * max(0.0, score - null["thresholds"][row][-1])
        return e + max(0.0, math.log10(n / null["lengths"][-1]))

    return log10_e


def document_p(log10_e: float) -> float:
    """log10 p of a document whose best passage has this E-value."""
    return log10_e if log10_e < -15 else math.log10(-math.expm1(-(10**log10_e)))


def _from_rows(null: dict[str, Any], r: int, n: int, d: float) -> float:
    rows = [i for i, length in enumerate(null["lengths"]) if length % r == n % r]
    low = [i for i in rows if null["lengths"][i] <= n][-1]
    longer = [i for i in rows if null["lengths"][i] > n]
    if longer:
        short, long = null["lengths"][low], null["lengths"][longer[0]]
        share = (math.sqrt(n) - math.sqrt(short)) / (math.sqrt(long) - math.sqrt(short))
        pairs = zip(null["thresholds"][low], null["thresholds"][longer[0]], strict=False)
        limits = [left + share * (right - left) for left, right in pairs]
    else:
        length, drift, offset = null["lengths"][low], null["drift"], null["offsets"][n % r]
        d = drift * length + offset + (d - drift * n - offset) * math.sqrt(length / n)
        limits = null["thresholds"][low]
    reached = [level for level, limit in zip(null["log10_levels"], limits, strict=False) if limit <= d + 1e-9]
    return min(reached, default=0.0)


@cache
def _table_file(name: str) -> dict[str, Any] | None:
    path = TABLES / f"{name}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def _table(scheme: Scheme) -> dict[str, Any] | None:
    return _table_file(f"{scheme.null.name}-r{scheme.size}")


def _decoy_p(
    scheme: Scheme, key: bytes, tokens: Sequence[int], statistic: Callable[[Sequence[float]], float]
) -> P:
    content = struct.pack(f"<{len(tokens)}q", *tokens)
    digest = hashlib.blake2b(content, key=key, digest_size=16).digest()
    low, high = struct.unpack("<QQ", digest)
    positions = len(tokens) - scheme.width - scheme.size + 1
    drawn = philox_words((low, high), DECOYS * positions)
    decoys = [
        statistic([scheme.standardised(scheme.null.draw(word)) for word in drawn[decoy::DECOYS]])
        for decoy in range(DECOYS)
    ]

    def p(score: float) -> float:
        return math.log10((1 + sum(decoy >= score - 1e-9 for decoy in decoys)) / (DECOYS + 1))

    return p
