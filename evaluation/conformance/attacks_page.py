"""The page of an attack report (`templates/attacks.html`): first where the mark fails, then all rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ttmark.evaluation.adversaries.catalogue import FORGING, KINDS
from ttmark.evaluation.conformance.attacks import UNMARKED, UNTOUCHED
from ttmark.evaluation.conformance.figures import Figure
from ttmark.evaluation.conformance.html import page
from ttmark.evaluation.report.result import groups, rate_name

FAILS, WEAKENED, HOLDS = (
    "The mark fails against these",
    "These weaken the mark",
    "The mark holds against these, as strong as they were tried",
)
LEFT, LOST = 0.9, 0.5
"""Of the share that is found of unedited texts: with less the mark is weakened, or fails."""


@dataclass(frozen=True, slots=True)
class _Line:
    """A stored row and its figures, the smallest rate last."""

    row: Mapping[str, Any]
    figures: Sequence[Figure]

    @property
    def share(self) -> float:
        """Found at the smallest rate."""
        return self.figures[-1].interval.estimate


def attacks_page(report: Mapping[str, Any]) -> tuple[str, str]:
    """The page before and after the data that `SignedKind.page` puts into it."""
    figures = [Figure.of_stored(one) for one in report["figures"]]
    lines = [
        _Line(row, [one for one in figures if (one.section, one.name) == (row["kind"], row["name"])])
        for row in report["attacks"]
    ]
    kinds = {
        kind: [line for line in lines if line.row["kind"] == kind]
        for kind in (UNTOUCHED, UNMARKED, *KINDS, FORGING)
    }
    return page(
        "attacks.html",
        f"What attacks leave of the mark of {report['subject']}",
        report=report,
        verdicts=verdicts(lines),
        unattacked=[line for line in lines if line.row["kind"] in (UNTOUCHED, UNMARKED)],
        forged=kinds[FORGING],
        kinds=kinds,
        heads=lambda lines: [f"at {rate_name(one.rate)}" for one in lines[0].figures],
        rows=lambda lines: [(line.row["name"], line.figures, line.row) for line in lines],
        left=LEFT,
        lost=LOST,
    )


def verdicts(lines: Sequence[_Line]) -> dict[str, list[_Line]]:
    """By what the attacks do to the mark: of each attack the weakest strength that does it.

    Those that fail come with the best text first: what an attacker would choose.
    """
    base = next(line for line in lines if line.row["kind"] == UNTOUCHED)
    by_attack = groups((line for line in lines if line.row["kind"] in KINDS), lambda line: line.row["attack"])
    found: dict[str, list[_Line]] = {FAILS: [], WEAKENED: [], HOLDS: []}
    for strengths in by_attack.values():
        for verdict, least in ((FAILS, LOST), (WEAKENED, LEFT)):
            below = [line for line in strengths if line.share < least * base.share]
            if below:
                found[verdict].append(below[0])
                break
        else:
            found[HOLDS].append(strengths[-1])
    found[FAILS].sort(key=lambda line: -_goodness(line.row))
    return found


def _goodness(row: Mapping[str, Any]) -> float:
    kept = row["kept"]
    return float((kept["similarity"] or kept["words"])["estimate"])
