"""`scrubbing`: edits that hide a watermark from the question of `/v1/detect` and lies it vouches for."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import typer

from ttmark.evaluation.adversaries.characters import INVISIBLE, VISIBLE
from ttmark.evaluation.adversaries.falsified import falsified
from ttmark.evaluation.adversaries.meaning import chrf, words_kept
from ttmark.evaluation.adversaries.rewriting import rewriting
from ttmark.evaluation.adversaries.victims import Victim, victims
from ttmark.evaluation.adversaries.word_classes import WORDS
from ttmark.evaluation.cells import Setting, sampling_seed
from ttmark.evaluation.edits import EDITS, Edit, Material
from ttmark.evaluation.intervals import Interval, mean, wilson
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import Human, Length, OneSetting, Texts
from ttmark.evaluation.report.figure import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups, rate_name, table_by

FPRS = (1e-2, 1e-5)
SHARES, SENTENCE_SHARES = (0.05, 0.1, 0.2, 0.4), (0.2, 0.4, 1.0)
CHANGES = (0, 1, 2, 4, 8)
OTHERS = (("gumbel", 1), ("synthid", 1), ("synthid", 2))
ANY_WORD: dict[str, Edit] = {
    "any words substituted": EDITS["substitute"],
    "any words deleted": EDITS["delete"],
}
FAMILIES: dict[str, tuple[dict[str, Edit], tuple[float, ...]]] = {
    "invisible": (INVISIBLE, SHARES),
    "visible": (VISIBLE, SHARES),
    "words": ({**WORDS, **ANY_WORD}, SHARES),
    "sentences": ({"sentences in another order": EDITS["swap"]}, SENTENCE_SHARES),
}
REWORDED = "sentences reworded by the model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbing:
    """What is still found after edits of every kind, and after lies are put into a marked text."""

    name: ClassVar[str] = "scrubbing"
    title: ClassVar[str] = "Scrubbing and lies"

    setting: OneSetting = Setting.CHAT
    texts: Texts = 100
    length: Length = 200
    reworded: Annotated[
        int, typer.Option(min=0, help="Texts of the default profile that the model says in other words.")
    ] = 50
    edits: Annotated[bool, typer.Option(help="Also edits and lies that need no model.")] = True
    defaults_only: Annotated[bool, typer.Option(help="The default profile alone.")] = False
    human: Human = None

    def measure(self, lab: Lab) -> None:
        material = Material.of(lab.human_texts(self.human))
        attacked = victims(lab.setting(self.setting), self.length, () if self.defaults_only else OTHERS)
        rows: list[ScrubRow] = []
        lies: list[LieRow] = []
        for victim in attacked if self.edits else ():
            texts = victim.texts(lab, self.texts)
            rows += measure_edits(lab, victim, texts, material)
            lies += measure_lies(lab, victim, texts)
        if self.reworded:
            rows += measure_reworded(lab, attacked[0], self.reworded)
        tables = [scrub_table(rows, self)] + [lie_table(lies, self)] * self.edits
        lab.finish(self.name, tables, [*rows, *lies], [scrub_figure(rows)])


@dataclass(frozen=True, slots=True)
class ScrubRow:
    """One profile, edit and share.

    Attributes:
        found: at each of `FPRS`.
        kept: words that are left, mean, of the text as a reader sees it.
        chrf: mean, 0 to 100.
    """

    profile: str
    family: str
    edit: str
    share: float
    texts: int
    found: tuple[Interval, ...]
    kept: Interval
    chrf: float


@dataclass(frozen=True, slots=True)
class LieRow:
    """One profile and number of changes that a text was to have.

    Attributes:
        made: mean number of changes; some texts offer fewer.
        found: at each of `FPRS`.
    """

    profile: str
    changes: int
    texts: int
    made: float
    found: tuple[Interval, ...]


def measure_edits(lab: Lab, victim: Victim, texts: Sequence[str], material: Material) -> Iterator[ScrubRow]:
    """The texts as they are, and after every edit at its shares."""
    yield scrub_row(lab, victim, ("none", "none", 0.0), texts, texts)
    for family, (edits, shares) in FAMILIES.items():
        for name, edit in edits.items():
            for share in shares:
                generator = np.random.default_rng(
                    sampling_seed(lab.run.seed, "scrubbing", name, share, victim.cell.name)
                )
                edited = [edit(text, share, material, generator) for text in texts]
                yield scrub_row(lab, victim, (family, name, share), texts, edited)


def measure_reworded(lab: Lab, victim: Victim, count: int) -> Iterator[ScrubRow]:
    """After the model said sentences in other words."""
    texts = victim.texts(lab, count)
    yield scrub_row(lab, victim, ("none", "none", 0.0), texts, texts)
    answers = rewriting(lab, victim.cell, texts)
    for share in SENTENCE_SHARES:
        edited = [answers.text(number, share, lab.run.seed) for number in range(len(texts))]
        yield scrub_row(lab, victim, ("sentences", REWORDED, share), texts, edited)


def scrub_row(
    lab: Lab, victim: Victim, what: tuple[str, str, float], before: Sequence[str], after: Sequence[str]
) -> ScrubRow:
    """What is left of the mark, and of texts as a reader sees them."""
    seen = [
        (lab.readings(one)[-1], lab.readings(other)[-1]) for one, other in zip(before, after, strict=True)
    ]
    kept = np.array([words_kept(*pair) for pair in seen])
    alike = float(np.mean([chrf(*pair) for pair in seen]))
    return ScrubRow(victim.name, *what, len(after), found_at(lab, victim, after), mean(kept), alike)


def measure_lies(lab: Lab, victim: Victim, texts: Sequence[str]) -> Iterator[LieRow]:
    """After negations, other numbers and other names."""
    for changes in CHANGES:
        generator = np.random.default_rng(sampling_seed(lab.run.seed, "lies", changes, victim.cell.name))
        changed = [falsified(text, changes, generator) for text in texts]
        made = float(np.mean([count for _, count in changed]))
        found = found_at(lab, victim, [text for text, _ in changed])
        yield LieRow(victim.name, changes, len(texts), made, found)


def found_at(lab: Lab, victim: Victim, texts: Sequence[str]) -> tuple[Interval, ...]:
    """Shares found at each of `FPRS`; text i under the key of text i of the victim's cell."""
    log10_p = np.array([victim.question(lab, index).log10_p(text) for index, text in enumerate(texts)])
    return tuple(wilson(int((log10_p <= math.log10(fpr)).sum()), len(texts)) for fpr in FPRS)


def _found(number: int) -> Callable[[ScrubRow | LieRow], str]:
    return lambda row: row.found[number].percent()


def scrub_table(rows: Sequence[ScrubRow], plan: Scrubbing) -> Table:
    """All rows."""
    return table_by(
        f"Edited texts, {plan.length} tokens",
        rows,
        {
            "profile": lambda row: row.profile,
            "kind": lambda row: row.family,
            "edit": lambda row: row.edit,
            "share": lambda row: f"{row.share:.0%}",
            "texts": lambda row: row.texts,
            **{f"found at {rate_name(fpr)}": _found(number) for number, fpr in enumerate(FPRS)},
            "words kept": lambda row: row.kept.percent(),
            "chrF": lambda row: f"{row.chrf:.0f}",
        },
        (
            f"Setting {plan.setting}. Found by the question of `/v1/detect`, one key tried. Share: of the"
            " words or sentences; a part of speech may have fewer words. Words kept and chrF: of texts as a"
            " reader sees them.",
            "Intervals are 95 %: Wilson for rates, bootstrap for means.",
        ),
    )


def lie_table(rows: Sequence[LieRow], plan: Scrubbing) -> Table:
    """What the mark still vouches for."""
    return table_by(
        f"Negations, numbers and names put into marked texts, {plan.length} tokens",
        rows,
        {
            "profile": lambda row: row.profile,
            "changes wanted": lambda row: row.changes,
            "made, mean": lambda row: f"{row.made:.1f}",
            "texts": lambda row: row.texts,
            **{f"found at {rate_name(fpr)}": _found(number) for number, fpr in enumerate(FPRS)},
        },
        ("A text offers as many places as it has auxiliary verbs, numbers and names.",),
    )


def scrub_figure(rows: Sequence[ScrubRow]) -> Figure:
    """Found at the finer rate by words changed, a panel for each profile."""
    panels = []
    for profile, of_profile in groups(rows, lambda row: row.profile).items():
        series = tuple(
            line(edit, of, lambda row: 100 * row.share, lambda row: row.found[-1])
            for edit, of in groups(of_profile, lambda row: row.edit).items()
            if edit != "none"
        )
        panels.append(Panel(profile, "words or sentences edited, %", f"found at {FPRS[-1]:g}", series))
    return Figure("scrubbing", "Edited texts", tuple(panels))
