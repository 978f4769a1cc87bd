"""`gains`: what the schemes take of the bounds of Theorems 1 and 2, and where gains come from."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from ttmark.evaluation.cells import Setting
from ttmark.evaluation.entropy import EntropyReport, entropy_note
from ttmark.evaluation.experiments.direct import BlockOptions, DirectRow, measure_direct, texts_note
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import OneSetting
from ttmark.evaluation.paper import row_name
from ttmark.evaluation.report.result import Table, groups, table_by

NOTE = (
    "Scores have mean 0 and variance 1 without a watermark. Gain by scores: of a block over that of"
    " a token, divided by the root of the block size; gain by coverage: root of the ratio of the"
    " shares of tokens in scored blocks (a context that occurred before is not scored, and those of"
    " longer blocks recur less); their product is the gain in mean z, up to the spread between texts."
    " The bounds are means over all positions."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gains(BlockOptions):
    """Where the gains of blocks come from: scores, coverage, and the bounds of Theorems 1 and 2."""

    name: ClassVar[str] = "gains"
    title: ClassVar[str] = "Where the gains come from"

    setting: OneSetting = Setting.ISO

    def measure(self, lab: Lab) -> None:
        setting = lab.setting(self.setting)
        report = lab.entropy(setting, max(self.lengths), max(self.texts), max(self.block_sizes))
        rows = measure_direct(lab.run, self.grid(setting), self.lengths, lab.prompt_rows)
        tables = [gains_table(found, report) for found in groups(rows, lambda row: row.length).values()]
        lab.finish(self.name, tables, rows)


def gains_table(rows: Sequence[DirectRow], report: EntropyReport) -> Table:
    """Rows of one length; blocks larger than the report's bounds are left out."""
    singles = {row.scheme: row for row in rows if row.block_size == 1}
    kept = [row for row in rows if row.block_size <= len(report.bounds) and row.scheme in singles]

    def gain(value: Callable[[DirectRow, DirectRow], object]) -> Callable[[DirectRow], object]:
        return lambda row: value(row, singles[row.scheme]) if row.block_size > 1 else None

    def by_scores(row: DirectRow, single: DirectRow) -> str:
        return f"{row.score.estimate / (math.sqrt(row.block_size) * single.score.estimate):.2f}"

    def bound(row: DirectRow) -> float:
        return report.bounds[row.block_size - 1].estimate

    return table_by(
        f"Where the gains come from, {rows[0].length} tokens, {rows[0].setting}",
        kept,
        {
            "": lambda row: row_name(row.scheme, row.block_size),
            "tokens in scored blocks": lambda row: row.covered.percent(),
            "score of a block": lambda row: row.score,
            "bound of a block": lambda row: report.bounds[row.block_size - 1],
            "share of the bound": lambda row: f"{row.score.estimate / bound(row):.2f}",
            "gain by scores": gain(by_scores),
            "gain by coverage": gain(
                lambda row, one: f"{math.sqrt(row.covered.estimate / one.covered.estimate):.2f}"
            ),
            "gain in mean z": lambda row: row.mean_gain,
            "gain of the bounds": gain(lambda row, _: f"{report.bound_gain(row.block_size):.2f}"),
        },
        (
            f"{texts_note(rows)}, each with a key of its own; brackets are 95 % intervals.",
            NOTE,
            entropy_note(report),
        ),
    )
