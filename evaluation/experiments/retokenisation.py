"""`retokenisation`: texts that are read as other tokens than they were generated as."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, SamplingSetting, Setting
from ttmark.evaluation.intervals import Interval, clopper_pearson
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import BlockSizes, Length, OneSetting, Schemes, Texts
from ttmark.evaluation.report.result import Table, power_of_ten, table_by
from ttmark.shared.watermark import Watermark, detect_aligned, detect_direct, detect_localized
from ttmark.shared.watermark.schemes.registry import scheme_title

LOG10_FPR = -5.0


@dataclass(frozen=True, slots=True)
class Retokenisation:
    """Texts that are decoded and encoded again, and what each mode of detection makes of them."""

    name: ClassVar[str] = "retokenisation"
    title: ClassVar[str] = "Texts read as other tokens"

    setting: OneSetting = Setting.DEFAULT
    schemes: Schemes = ("synthid",)
    block_sizes: BlockSizes = (2,)
    length: Length = 200
    texts: Texts = 200

    def measure(self, lab: Lab) -> None:
        setting = lab.setting(self.setting)
        cells = [Cell(scheme, r, setting, self.length) for scheme in self.schemes for r in self.block_sizes]
        rows = [row for cell in cells for row in measure_cell(lab, cell, self.texts)]
        lab.finish(self.name, [retokenisation_table(rows, self.length, setting)], rows)


@dataclass(frozen=True, slots=True)
class RetokenisationRow:
    """One mode of detection, scheme and block size.

    Attributes:
        changed: share of the texts that are read as other tokens.
        shifted: share of those with a change of length that moves the boundaries of blocks.
        from_tokens, from_text: share found at FPR 1e-5 from the generated tokens, and from the text.
        of_changed: found from the text, of those that are read as other tokens; None without any.
    """

    scheme: str
    block_size: int
    mode: str
    texts: int
    changed: Interval
    shifted: Interval
    from_tokens: Interval
    from_text: Interval
    of_changed: Interval | None
    median_log10_p: float


def measure_cell(lab: Lab, cell: Cell, count: int) -> list[RetokenisationRow]:
    """One row per mode of detection."""
    watermark, tokenizer = cell.watermark(), lab.source.tokenizer
    keys = [cell.key(lab.run.seed, index) for index in range(count)]
    written = [list(text.token_ids) for text in lab.run.texts(cell, count)]
    read = [tokenizer.encode(tokenizer.decode(ids)) for ids in written]
    pairs = list(zip(written, read, strict=True))
    changed = np.array([before != after for before, after in pairs])
    shifted = np.array([(len(after) - len(before)) % cell.block_size != 0 for before, after in pairs])
    generated = [log10_p_values(watermark, key, ids) for key, ids in zip(keys, written, strict=True)]
    again = [log10_p_values(watermark, key, ids) for key, ids in zip(keys, read, strict=True)]
    rows = []
    for mode in again[0]:
        from_tokens, from_text = (np.array([found[mode] for found in texts]) for texts in (generated, again))
        found = from_text <= LOG10_FPR
        rows.append(
            RetokenisationRow(
                scheme=str(cell.scheme),
                block_size=cell.block_size,
                mode=mode,
                texts=count,
                changed=_rate(changed),
                shifted=_rate(shifted),
                from_tokens=_rate(from_tokens <= LOG10_FPR),
                from_text=_rate(found),
                of_changed=_rate(found[changed]) if changed.any() else None,
                median_log10_p=float(np.median(from_text)),
            )
        )
    return rows


def _rate(hits: NDArray[np.bool_]) -> Interval:
    return clopper_pearson(int(hits.sum()), len(hits))


def log10_p_values(watermark: Watermark, key: bytes, ids: Sequence[int]) -> dict[str, float]:
    """log10 of the p-value in each mode."""
    return {
        "direct, phase 0": detect_direct(watermark, key, ids).log10_p,
        "direct, any phase": detect_direct(watermark, key, ids, phase="any").log10_p,
        "aligned": detect_aligned(watermark, key, ids).log10_p,
        "localized": detect_localized(watermark, key, ids, log10_e_limit=LOG10_FPR).log10_p,
    }


def retokenisation_table(rows: Sequence[RetokenisationRow], length: int, setting: SamplingSetting) -> Table:
    """All rows."""
    return table_by(
        f"Read again from the text, {length} tokens, {setting}",
        rows,
        {
            "": lambda row: f"{scheme_title(row.scheme)}, r = {row.block_size}",
            "read as other tokens": lambda row: row.changed.percent(),
            "blocks shifted": lambda row: row.shifted.percent(),
            "mode": lambda row: row.mode,
            "found from tokens": lambda row: row.from_tokens.percent(),
            "found from text": lambda row: row.from_text.percent(),
            "found of those read as other tokens": lambda row: row.of_changed and row.of_changed.percent(),
            "median p from text": lambda row: power_of_ten(row.median_log10_p),
        },
        (f"{rows[0].texts} texts per row, each with a key of its own; found at FPR 1e-5; 95 % intervals.",),
    )
