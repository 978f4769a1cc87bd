"""What the likelihood ratio promises, on simulated scores: false positives, and intervals for the share."""

import logging
import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.core.rate_tables import rate_cell
from ttmark.evaluation.intervals import clopper_pearson
from ttmark.evaluation.report.result import Table, table_of
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.likelihood.evidence import log10_of_evidence
from ttmark.shared.watermark.likelihood.forward_backward import find_passes
from ttmark.shared.watermark.likelihood.importance_sampling import NullTail, gate
from ttmark.shared.watermark.likelihood.laws import Cells
from ttmark.shared.watermark.likelihood.marked_passages import interval_of, posterior
from ttmark.shared.watermark.likelihood.rows import PLAIN, Chain, Ratios, as_table, evidence_paths

LEVELS = (1e-2, 1e-3, 1e-4, 1e-5)
LENGTHS = (50, 200, 1_000)
SETS = 24
"""Texts of a cell: each has draws of its own, and its share of the trials as wrong keys."""
ROWS = 20_000
LEAST_LOG10_E = 4.0
"""Mixtures with less are not found, and have no share."""

log = logging.getLogger(__name__)


def rates_table(schemes: Sequence[str], block_sizes: Sequence[int], trials: int, seed: int) -> Table:
    """How often text without the mark is found at each level, `trials` wrong keys a cell.

    Without a reader; the p-value is drawn for where detection draws for it.
    """
    rows = []
    for scheme, size, tokens in product(schemes, block_sizes, LENGTHS):
        watermark = Watermark(scheme, size)
        hits, done = np.zeros((SETS, len(LEVELS)), dtype=np.int64), 0
        chain = _plain(Ratios.of(watermark), tokens - watermark.context_width - size + 1, size)
        for number in range(SETS):
            keys = math.ceil(trials / SETS)
            hits[number] = _found(chain, keys, seed * SETS + number)
            done += keys
        cells = [
            rate_cell(int(found), done, level) for found, level in zip(hits.sum(axis=0), LEVELS, strict=True)
        ]
        shares = [
            f"{found / done / level:.2f}" for found, level in zip(hits.sum(axis=0), LEVELS, strict=True)
        ]
        spread = hits[:, 0] / (done / SETS) / LEVELS[0]
        rows.append(
            [
                scheme,
                size,
                tokens,
                f"{done:,}",
                *cells,
                ", ".join(shares),
                f"{spread.min():.2f} to {spread.max():.2f}",
            ]
        )
        log.info("%s r=%d %d tokens: %s", scheme, size, tokens, ", ".join(shares))
    columns = ["scheme", "r", "tokens", "wrong keys", *[f"at {level:g}" for level in LEVELS]]
    columns += ["over the promise", f"text by text, at {LEVELS[0]:g}"]
    return table_of("False positives of the likelihood ratio", columns, rows)


def _found(chain: Chain, keys: int, seed: int) -> NDArray[np.int64]:
    """Of wrong keys of one text, how many find it at each level [levels]."""
    passes = find_passes()
    tails = [NullTail.draw(passes, chain, math.log10(level), seed) for level in LEVELS]
    hits = np.zeros(len(LEVELS), dtype=np.int64)
    for first in range(0, keys, ROWS):
        # Other numbers than those of draws and pilots.
        unmarked = np.full(min(ROWS, keys - first), -1)
        cells = passes.draw(chain, seed + 1_000_003, (1 << 50) + first, unmarked)
        log10_e = log10_of_evidence(passes, chain, cells)
        for number, (tail, level) in enumerate(zip(tails, LEVELS, strict=True)):
            close = log10_e >= gate(-math.log10(level))
            hits[number] += np.count_nonzero(-log10_e[~close] <= math.log10(level))
            if close.any():
                hits[number] += np.count_nonzero(tail.log10_p(cells[close]) <= math.log10(level))
    return hits


def coverage_table(documents: int, seed: int) -> Table:
    """How often the interval for the marked share holds it: pairs by Gumbel, without a reader."""
    watermark, rng = Watermark("gumbel", 2, 2), np.random.default_rng(seed)
    ratios, passes = Ratios.of(watermark), find_passes()
    rows = []
    for kind in KINDS:
        held, widths, found = [], [], 0
        for _ in range(documents // len(KINDS)):
            tokens, spans, edited = _mixture(kind, rng)
            cells, truth = _written(ratios, tokens, spans, edited, rng)
            chain = _plain(ratios, tokens - 3, 2)
            if log10_of_evidence(passes, chain, cells[None])[0] < LEAST_LOG10_E:
                continue
            found += 1
            _, carried = posterior(passes, chain, cells, tokens, 2)
            low, high = interval_of(carried)
            held.append(low - 1e-9 <= truth <= high + 1e-9)
            widths.append(high - low)
        range_ = clopper_pearson(sum(held), found)
        rows.append(
            [
                kind,
                found,
                f"{np.mean(held):.1%} [{range_.low:.1%}, {range_.high:.1%}]",
                f"{np.mean(widths):.2f}",
            ]
        )
    return table_of("Intervals for the marked share", ["text", "found", "held the truth", "mean width"], rows)


KINDS = ("whole", "half", "300 tokens of it", "three answers", "whole, edited", "300 tokens, edited")


def _mixture(kind: str, rng: np.random.Generator) -> tuple[int, list[tuple[int, int]], float]:
    """Tokens of a text, marked spans of it, and the chance of an edit at each token within."""
    tokens = int(rng.choice([200, 400, 800, 1_500]))
    edited = 0.06 if kind.endswith("edited") else 0.0
    if kind.startswith("whole"):
        return tokens, [(0, tokens)], edited
    if kind == "half":
        return tokens, [(0, tokens // 2)], edited
    if kind == "three answers":
        return 1_500, [(at, at + int(rng.integers(100, 250))) for at in (100, 600, 1_100)], edited
    start = int(rng.integers(0, tokens + 1))
    return tokens + 300, [(start, start + 300)], edited


def _written(
    ratios: Ratios, tokens: int, spans: Sequence[tuple[int, int]], edited: float, rng: np.random.Generator
) -> tuple[Cells, float]:
    """Cells of a text of pairs under contexts of two tokens, and the share of it that is marked.

    An edit puts one word for another: it costs the blocks whose context or own tokens hold it.
    """
    words = rng.integers(0, 2**64, tokens - 3, dtype=np.uint64)
    cells = np.searchsorted(ratios.limits[0, 0, :-1], words, side="right")
    for at in _blocks(spans, edited, rng):
        if at - 2 < cells.size:
            cells[at - 2] = np.searchsorted(ratios.limits[0, PLAIN, :-1], words[at - 2], side="right")
    return cells.astype(np.uint16), sum(end - start for start, end in spans) / tokens


def _blocks(spans: Sequence[tuple[int, int]], edited: float, rng: np.random.Generator) -> Iterator[int]:
    """First tokens of marked blocks that no edit touched."""
    for start, end in spans:
        changed = rng.random(end - start) < edited
        for at in range(start + 2, end - 1, 2):
            if not changed[at - start - 2 : at - start + 2].any():
                yield at


def _plain(ratios: Ratios, positions: int, block_size: int) -> Chain:
    return Chain.plain(ratios, positions, as_table(evidence_paths(by_surprise=False)), block_size)
