"""The skip penalty of the aligned detector (paper, Figure 5), from rows that `edits` measures."""

from collections.abc import Sequence

from evaluation.experiments.edits import EditPlan, EditRow
from evaluation.paper import SCHEME_NAMES
from evaluation.report.figure import Figure, Panel, Series
from evaluation.report.table import Table


def beta_table(rows: Sequence[EditRow], plan: EditPlan, notes: tuple[str, ...]) -> Table:
    """TPR at FPR 1 % by edit, scheme and skip penalty; rows of one length."""
    kinds = list(dict.fromkeys((row.edit, row.scheme) for row in rows))
    by_kind = {(row.edit, row.scheme, row.beta): row for row in rows}
    first = rows[0]
    return Table(
        f"TPR at FPR 1 % by skip penalty, r = {first.block_size}, {100 * plan.share:.0f} % edited,"
        f" {first.length} tokens, {plan.setting}",
        ("edit", "scheme", *(f"beta {beta:g}" for beta in plan.betas)),
        tuple(
            (
                edit,
                SCHEME_NAMES[scheme],
                *(by_kind[edit, scheme, beta].tpr[0].percent() for beta in plan.betas),
            )
            for edit, scheme in kinds
        ),
        (
            f"{first.texts} texts per cell; thresholds from {first.null_texts} scores of unwatermarked texts"
            " with the same edit and skip penalty; 95 % intervals.",
            *notes,
        ),
    )


def beta_figure(rows: Sequence[EditRow]) -> Figure:
    """One panel per edit and length."""
    panels = []
    for edit, length in dict.fromkeys((row.edit, row.length) for row in rows):
        series = []
        for scheme in dict.fromkeys(row.scheme for row in rows):
            kept = [row for row in rows if (row.edit, row.length, row.scheme) == (edit, length, scheme)]
            points = tuple(row.beta for row in kept)
            series.append(Series(SCHEME_NAMES[scheme], points, tuple(row.tpr[0] for row in kept)))
        panels.append(
            Panel(
                f"{edit}, {length} tokens", "skip penalty beta", "TPR at FPR 1 %", tuple(series), log_x=True
            )
        )
    return Figure("beta", "Skip penalty of the aligned detector", tuple(panels))
