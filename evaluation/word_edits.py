"""Aligned detection after single words of a text were changed."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, sampling_seed
from ttmark.evaluation.edits import EDITS, Material
from ttmark.evaluation.intervals import Interval, wilson
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.run import Completion
from ttmark.shared.watermark import detect_aligned

WORD_EDITS = ("substitute", "delete", "insert")
SHARES, FPRS, POOLS = (0.1, 0.25), (1e-2, 1e-5), (1, 4, 16, 64)


@dataclass(frozen=True, slots=True)
class EditedRate:
    """Share of the edited texts that are found.

    Attributes:
        share: of the words that are edited.
        pool: number of keys that p-values are multiplied by.
        by_kind: for each of `WORD_EDITS`.
        every: of all kinds, each made of every text.
    """

    share: float
    fpr: float
    pool: int
    by_kind: tuple[Interval, ...]
    every: Interval


def found(log10_p: NDArray[np.float64], fpr: float, pool: int) -> Interval:
    """Share of p-values that reach the rate when they are multiplied by the size of the pool."""
    hits = log10_p + math.log10(pool) <= math.log10(fpr)
    return wilson(int(hits.sum()), hits.size)


def edited_rates(
    lab: Lab, cell: Cell, texts: Sequence[Completion], material: Material
) -> Iterator[EditedRate]:
    """For each of `SHARES`, `POOLS` and `FPRS`."""
    for share in SHARES:
        log10_p = edited_log10_p(lab, cell, texts, share, material)
        for pool in POOLS:
            for fpr in FPRS:
                by_kind = tuple(found(row, fpr, pool) for row in log10_p)
                yield EditedRate(share, fpr, pool, by_kind, found(log10_p, fpr, pool))


def edited_log10_p(
    lab: Lab, cell: Cell, texts: Sequence[Completion], share: float, material: Material
) -> NDArray[np.float64]:
    """log10 p after each of `WORD_EDITS` of `share` of the words, [edits, texts]; read again as tokens."""
    tokenizer, rows = lab.source.tokenizer, []
    for name in WORD_EDITS:
        generator = np.random.default_rng(sampling_seed(lab.run.seed, "edit", name, share, cell.name))
        row = []
        for text in texts:
            edited = EDITS[name](tokenizer.decode(text.token_ids), share, material, generator)
            tokens = np.array(tokenizer.encode(edited), dtype=np.int64)
            row.append(detect_aligned(cell.watermark(), cell.key(lab.run.seed, text.index), tokens).log10_p)
        rows.append(row)
    return np.array(rows)
