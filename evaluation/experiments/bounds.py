"""What the schemes take of the bounds of Theorems 1 and 2, and where gains come from."""

import math
from collections.abc import Sequence

from evaluation.entropy import EntropyReport
from evaluation.experiments.direct import DirectRow, texts_note
from evaluation.paper import row_name
from evaluation.report.table import Table


def bounds_table(rows: Sequence[DirectRow], report: EntropyReport, notes: tuple[str, ...] = ()) -> Table:
    """Rows of one length; blocks larger than the report's bounds are left out."""
    first = rows[0]
    singles = {row.scheme: row for row in rows if row.block_size == 1}
    kept = [row for row in rows if row.block_size <= len(report.bounds) and row.scheme in singles]
    columns = (
        "",
        "tokens in scored blocks",
        "score of a block",
        "bound of a block",
        "share of the bound",
        "gain by scores",
        "gain by coverage",
        "gain in mean z",
        "gain of the bounds",
    )
    return Table(
        f"Where the gains come from, {first.length} tokens, {first.setting}",
        columns,
        tuple(_cells(row, singles[row.scheme], report) for row in kept),
        (
            f"{texts_note(rows)}, each with a key of its own; brackets are 95 % intervals.",
            "Scores have mean 0 and variance 1 without a watermark. Gain by scores: of a block over that of"
            " a token, divided by the root of the block size; gain by coverage: root of the ratio of the"
            " shares of tokens in scored blocks (a context that occurred before is not scored, and those of"
            " longer blocks recur less); their product is the gain in mean z, up to the spread between texts."
            " The bounds are means over all positions.",
            *notes,
        ),
    )


def _cells(row: DirectRow, single: DirectRow, report: EntropyReport) -> tuple[str, ...]:
    bound = report.bounds[row.block_size - 1]
    cells = (
        row_name(row.scheme, row.block_size),
        row.covered.percent(),
        str(row.score),
        str(bound),
        f"{row.score.estimate / bound.estimate:.2f}",
    )
    if row.block_size == 1:
        return (*cells, "", "", "", "")
    return (
        *cells,
        f"{row.score.estimate / (math.sqrt(row.block_size) * single.score.estimate):.2f}",
        f"{math.sqrt(row.covered.estimate / single.covered.estimate):.2f}",
        str(row.gain) if row.gain else "",
        f"{report.bound_gain(row.block_size):.2f}",
    )
