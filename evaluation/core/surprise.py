"""Curves of surprise for the likelihood ratio, by the evidence of marked texts, edited and then read."""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from ttmark.evaluation.report.result import Table, table_of
from ttmark.shared.watermark import Watermark
from ttmark.shared.watermark.likelihood.chain import Chain
from ttmark.shared.watermark.likelihood.evidence import log10_of_evidence, ratios_of
from ttmark.shared.watermark.likelihood.laws import Cells
from ttmark.shared.watermark.likelihood.passes import find_passes
from ttmark.shared.watermark.likelihood.reading import FITTED, Curve, Reading
from ttmark.shared.watermark.likelihood.rows import Rows

NONE = Curve(most=0.0)
CURVES = tuple(
    Curve(after, calm, per_bit)
    for after, calm, per_bit in product((0.0, 0.25, 0.5), (5.5, 7, 9, 11, 13), (0.06, 0.12, 0.2))
)
BEST = 3


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A text under the key that it was marked with."""

    chain: Chain
    cells: Cells
    reading: Reading
    watermark: Watermark

    @classmethod
    def of(cls, line: dict[str, Any]) -> "Text":
        """Of a line of the file: see `surprise_table`."""
        watermark = Watermark(line["scheme"], line["block_size"], line["context_width"])
        reading = Reading(np.array(line["log_probs"]))
        rows = Rows.of(watermark, ratios_of(watermark), [line["ids"]], [reading])
        cells = next(found for _, found in rows.cells_under_each(watermark, [bytes.fromhex(line["key"])]))
        return cls(rows.chains[0], cells, reading, watermark)

    def log10_e(self, curve: Curve) -> float:
        """Evidence where the curve says how paths leave."""
        surprise = self.reading.surprise(self.watermark.context_width, self.watermark.block_size, curve)
        return float(log10_of_evidence(find_passes(), replace(self.chain, surprise=surprise), self.cells)[0])


def surprise_table(readings: Path) -> Table:
    """The best of `CURVES` by mean log10 E, kinds of edits alike; the one that ships; a fixed chance alone.

    Args:
        readings: lines as `mixtures_table` reads them, `written` apart, with the name of an `edit` each.
    """
    texts = defaultdict(list)
    for line in readings.read_text(encoding="utf-8").splitlines():
        said = json.loads(line)
        texts[str(said["edit"])].append(Text.of(said))
    found = {curve: _means(list(texts.values()), curve) for curve in {*CURVES, FITTED, NONE}}
    order = sorted(found, key=lambda curve: -float(np.mean(found[curve])))
    rows = [
        [curve.after, curve.calm, curve.per_bit, curve.most, *(f"{mean:.2f}" for mean in found[curve])]
        for curve in dict.fromkeys([*order[:BEST], FITTED, NONE])
    ]
    columns = ["after", "calm", "per bit", "most", *(f"{edit} ({len(texts[edit])})" for edit in texts)]
    return table_of("Mean log10 E by the curve of surprise", columns, rows)


def _means(kinds: Sequence[Sequence[Text]], curve: Curve) -> list[float]:
    return [float(np.mean([text.log10_e(curve) for text in texts])) for texts in kinds]
