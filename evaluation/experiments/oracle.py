"""`oracle`: removal and forgery by one who may ask the detector so many questions, by what it tells."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, ClassVar

import numpy as np
import typer

from ttmark.evaluation.adversaries.forging import FORGERIES, RATES, Counterfeiter
from ttmark.evaluation.adversaries.question import Question
from ttmark.evaluation.adversaries.removing import LOG10_FPR, MOST_CHANGED, REMOVALS, Scrubber, Words
from ttmark.evaluation.adversaries.victims import Victim, victims
from ttmark.evaluation.cells import Cell, Setting, sampling_seed
from ttmark.evaluation.edits import Material, words_of
from ttmark.evaluation.intervals import Interval, wilson
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import Human, Length, OneSetting, Texts
from ttmark.evaluation.report.figure import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups, table_by

BUDGETS = (0, 10, 30, 100, 300)
OTHERS = (("gumbel", 1), ("synthid", 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class Oracle:
    """Removal and forgery with questions to a detector that shows scores, a p-value, a verdict or nothing."""

    name: ClassVar[str] = "oracle"
    title: ClassVar[str] = "Asking the detector"

    setting: OneSetting = Setting.CHAT
    texts: Texts = 30
    length: Length = 200
    budgets: Annotated[
        tuple[int, ...], typer.Option("--budget", min=0, help="Questions, ascending; may be repeated.")
    ] = BUDGETS
    defaults_only: Annotated[bool, typer.Option(help="The default profile alone.")] = False
    human: Human = None

    def measure(self, lab: Lab) -> None:
        material = Material.of(lab.human_texts(self.human))
        setting = lab.setting(self.setting)
        removed: list[OracleRow] = []
        forged: list[OracleRow] = []
        for victim in victims(setting, self.length, () if self.defaults_only else OTHERS):
            removed += measure_removal(lab, victim, self, material)
            forged += measure_forgery(lab, victim, self, material)
        tables = [removal_table(removed, self), forgery_table(forged, self)]
        lab.finish(self.name, tables, [*removed, *forged], [oracle_figure(removed, forged)])


@dataclass(frozen=True, slots=True)
class OracleRow:
    """What attackers with one budget publish.

    Attributes:
        tells: what the detector answers with.
        success: of removal not found at 1e-5; of forgery found at each rate of `RATES`.
        changed: share of the words changed, median of the successes at the last rate; None without any.
    """

    goal: str
    profile: str
    tells: str
    budget: int
    texts: int
    success: tuple[Interval, ...]
    changed: float | None


def measure_removal(lab: Lab, victim: Victim, plan: Oracle, material: Material) -> Iterator[OracleRow]:
    """The first texts of the victim's that are found before the attack."""
    texts = enumerate(victim.texts(lab, 2 * plan.texts))
    asked = [(index, text, victim.question(lab, index)) for index, text in texts]
    found = [one for one in asked if one[2].log10_p(one[1]) <= LOG10_FPR][: plan.texts]
    for tells, attack in REMOVALS.items():
        outcomes = []
        for index, text, question in found:
            generator = _generator(lab, "removal", tells, victim, index)
            words = words_of(text)
            published = at_budgets(attack(Scrubber(question, words, material, generator)), plan.budgets)
            outcomes.append([Outcome.of(question, words, one) for one in published])
        yield from rows_of("removal", victim, tells, plan.budgets, outcomes)


def measure_forgery(lab: Lab, victim: Victim, plan: Oracle, material: Material) -> Iterator[OracleRow]:
    """Texts of the model without a mark, under the keys of the victim's texts."""
    plain = Victim("plain", Cell(None, 1, victim.cell.setting, plan.length))
    texts = plain.texts(lab, plan.texts)
    for tells, attack in FORGERIES.items():
        outcomes = []
        for index, text in enumerate(texts):
            generator = _generator(lab, "forgery", tells, victim, index)
            question, words = victim.question(lab, index), words_of(text)
            published = at_budgets(attack(Counterfeiter(question, words, material, generator)), plan.budgets)
            outcomes.append([Outcome.of(question, words, one) for one in published])
        yield from rows_of("forgery", victim, tells, plan.budgets, outcomes)


def _generator(lab: Lab, goal: str, tells: str, victim: Victim, index: int) -> np.random.Generator:
    return np.random.default_rng(sampling_seed(lab.run.seed, "oracle", goal, tells, victim.cell.name, index))


def at_budgets(attack: Iterator[Words], budgets: Sequence[int]) -> list[Words]:
    """What an attack has to publish after each number of questions, ascending; its last when it is over."""
    published: list[Words] = []
    last: Words = []
    done = -1
    for budget in budgets:
        for words in islice(attack, budget - done):
            last = words
        done = budget
        published.append(last)
    return published


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the detection makes of a published text, and how much of the text was changed."""

    log10_p: float
    changed: float

    @classmethod
    def of(cls, question: Question, before: Words, after: Words) -> "Outcome":
        """Of `after`, which was `before`, word by word."""
        different = sum(one != other for one, other in zip(before, after, strict=True))
        return cls(question.log10_p("".join(after)), different / len(before))


def rows_of(
    goal: str, victim: Victim, tells: str, budgets: Sequence[int], outcomes: Sequence[Sequence[Outcome]]
) -> Iterator[OracleRow]:
    """One row for each budget; outcomes [texts][budgets], none where there was no text to attack."""
    if not outcomes:
        return
    for budget, of in zip(budgets, zip(*outcomes, strict=True), strict=True):
        if goal == "removal":
            successes = [[one for one in of if one.log10_p > LOG10_FPR]]
        else:
            successes = [[one for one in of if one.log10_p <= rate] for rate in RATES]
        changed = [one.changed for one in successes[-1]]
        yield OracleRow(
            goal,
            victim.name,
            tells,
            budget,
            len(of),
            tuple(wilson(len(some), len(of)) for some in successes),
            float(np.median(changed)) if changed else None,
        )


def _changed(row: OracleRow) -> str | None:
    return None if row.changed is None else f"{row.changed:.0%}"


def removal_table(rows: Sequence[OracleRow], plan: Oracle) -> Table:
    """Texts that are no longer found."""
    return table_by(
        f"Removal with questions to the detector, {plan.length} tokens",
        rows,
        {
            "profile": lambda row: row.profile,
            "the detector tells": lambda row: row.tells,
            "questions": lambda row: row.budget,
            "texts": lambda row: row.texts,
            "no longer found at 1e-5": lambda row: row.success[0].percent(),
            "words changed, median of these": _changed,
        },
        (
            f"Setting {plan.setting}. Texts that are found before. Each attacker may delete or substitute"
            f" {MOST_CHANGED:.0%} of the words. One who does not know that a text is clear uses them all.",
            "Intervals are 95 % (Wilson).",
        ),
    )


def forgery_table(rows: Sequence[OracleRow], plan: Oracle) -> Table:
    """Texts that nobody marked and that are found."""

    def found(number: int) -> Callable[[OracleRow], str]:
        return lambda row: row.success[number].percent()

    return table_by(
        f"Forgery with questions to the detector, {plan.length} tokens",
        rows,
        {
            "profile": lambda row: row.profile,
            "the detector tells": lambda row: row.tells,
            "questions": lambda row: row.budget,
            "texts": lambda row: row.texts,
            **{f"found at 1e{rate:.0f}": found(number) for number, rate in enumerate(RATES)},
            "words changed, median of those at 1e-5": _changed,
        },
        (
            "Unmarked texts of the model; words become words of texts by people, as many as the attacker"
            " likes and without sense. Verdicts are given at 1e-2, 1e-3 and 1e-5, as the attacker asks.",
        ),
    )


def oracle_figure(removed: Sequence[OracleRow], forged: Sequence[OracleRow]) -> Figure:
    """Success by questions, for the first profile."""
    panels = []
    for title, rows in (("no longer found at 1e-5", removed), ("forged, found at 1e-5", forged)):
        if not rows:
            continue
        first = [row for row in rows if row.profile == rows[0].profile]
        series = tuple(
            line(tells, of, lambda row: row.budget, lambda row: row.success[-1])
            for tells, of in groups(first, lambda row: row.tells).items()
        )
        panels.append(Panel(rows[0].profile, "questions", title, series))
    return Figure("oracle", "Asking the detector", tuple(panels))
