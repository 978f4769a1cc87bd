"""Receipts against detection: of answers with each word, how many the detector finds from their words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.answers import Answer
from ttmark.evaluation.intervals import Interval, clopper_pearson
from ttmark.evaluation.report.result import Table, rate_name, table_by
from ttmark.gen_service.api.receipt import ReceiptRule, exact_log10_p
from ttmark.gen_service.engine import Marking
from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct

RULE = ReceiptRule()
"""What the words mean by default."""
POOL = 16
"""Keys that the default profile's detection tries (`shared/schemas/presets.py`)."""
DECADES = (-12.0, -8.0, -5.0, -3.0)
"""Where groups of receipts end; -8 and -5 are where the words change at the default rate."""


@dataclass(frozen=True, slots=True)
class ReceiptRow:
    """Answers whose receipts have a p-value in one range.

    Attributes:
        word: that each of these receipts says.
        above, up_to: the range of log10 p, the second included; None: no end.
        direct, aligned: share found from the words at the rate of the receipt, one key tried.
        direct_pool, aligned_pool: the same with `POOL` keys tried.
    """

    profile: str
    word: str
    above: float | None
    up_to: float
    texts: int
    direct: Interval
    aligned: Interval
    direct_pool: Interval
    aligned_pool: Interval


def receipt_log10_p(watermark: Watermark, answer: Answer) -> float:
    """The number of the receipt that the generation service gives with the answer."""
    return exact_log10_p(
        Marking("evaluation", 1, "evaluation", watermark, answer.key), answer.tokens.tolist()
    )


def found_log10_p(watermark: Watermark, answers: Sequence[Answer]) -> Mapping[str, NDArray[np.float64]]:
    """log10 p from the words under the answer's own key, by mode of detection, [answers] each."""
    direct = [detect_direct(watermark, one.key, one.read, phase="any").log10_p for one in answers]
    aligned = [detect_aligned(watermark, one.key, one.read).log10_p for one in answers]
    return {"direct": np.array(direct), "aligned": np.array(aligned)}


def receipt_rows(
    profile: str, predicted: NDArray[np.float64], found: Mapping[str, NDArray[np.float64]]
) -> list[ReceiptRow]:
    """The best receipts first; ranges without a receipt are left out.

    Args:
        predicted: log10 p of receipts, [answers].
        found: log10 p of detection of the same answers, by mode.
    """
    rate = math.log10(RULE.fpr)
    rows = []
    for above, up_to in zip((None, *DECADES), (*DECADES, 0.0), strict=True):
        inside = predicted <= up_to
        if above is not None:
            inside &= predicted > above
        if not inside.any():
            continue

        def share(mode: str, keys: int, inside: NDArray[np.bool_] = inside) -> Interval:
            hits = found[mode][inside] + math.log10(keys) <= rate
            return clopper_pearson(int(hits.sum()), hits.size)

        shares = [share(mode, keys) for keys in (1, POOL) for mode in ("direct", "aligned")]
        rows.append(ReceiptRow(profile, RULE.word(up_to), above, up_to, int(inside.sum()), *shares))
    return rows


def receipts_table(rows: Sequence[ReceiptRow]) -> Table:
    """All rows."""
    return table_by(
        "What receipts predict, and what detection finds",
        rows,
        {
            "profile": lambda row: row.profile,
            "receipt": lambda row: row.word,
            "its log10 p": lambda row: _range(row),
            "answers": lambda row: row.texts,
            "found, direct": lambda row: row.direct.percent(),
            "found, aligned": lambda row: row.aligned.percent(),
            f"direct, {POOL} keys": lambda row: row.direct_pool.percent(),
            f"aligned, {POOL} keys": lambda row: row.aligned_pool.percent(),
        },
        (
            "A receipt is the exact p-value of the generated token ids under the key that marked them; from"
            f" these ids direct detection at FPR {rate_name(RULE.fpr)} finds `strong` and `weak` and no"
            " `none`, always.",
            f"Found: here the words are read as tokens anew, and at any boundary of blocks; FPR"
            f" {rate_name(RULE.fpr)}; {POOL} keys: p-values are multiplied by {POOL}.",
            "Answers end where the model ends them.",
            "Intervals are 95 % (Clopper-Pearson).",
        ),
    )


def _range(row: ReceiptRow) -> str:
    if row.above is None:
        return f"up to {row.up_to:g}"
    return f"above {row.above:g}, up to {row.up_to:g}"
