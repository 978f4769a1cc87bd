"""`kinds`: languages and kinds of text: how well each is found, why, and whether receipts say so."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import typer
from numpy.typing import NDArray

from ttmark.evaluation.cells import Cell, SamplingSetting, Setting
from ttmark.evaluation.detection import detect_texts
from ttmark.evaluation.experiments.frontier import BEFORE, NOW
from ttmark.evaluation.intervals import Interval, bootstrap, clopper_pearson, mean
from ttmark.evaluation.kinds import QUESTIONS_PATH, Kind, read_questions
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import Lengths, OneSetting, TextsInTurn, in_turn
from ttmark.evaluation.profiles import Profile
from ttmark.evaluation.receipts import POOL, RULE, ReceiptRow, receipt_rows, receipts_table
from ttmark.evaluation.report.figure import Figure, Panel, Series, line
from ttmark.evaluation.report.result import Table, groups, rate_name, table_by
from ttmark.evaluation.survey import Sample, Survey, TextEntropy

PROFILES = (NOW, Profile("gumbel", 1, 2), BEFORE)
"""The default one, the same with single tokens, and SynthID-Text on pairs as it is by default."""
FPRS = (1e-3, 1e-5)
_LOG10_LIMIT = math.log10(RULE.fpr / POOL)


@dataclass(frozen=True, slots=True)
class Kinds:
    """Prose, dialogue, code, lists, JSON and other languages: how well each is found, and its receipts."""

    name: ClassVar[str] = "kinds"
    title: ClassVar[str] = "Languages and kinds of text"

    setting: OneSetting = Setting.CHAT
    lengths: Lengths = (100, 200)
    texts: TextsInTurn = (48, 24)
    questions: Annotated[
        Path, typer.Option(help="JSONL with `language`, `kind` and `prompt`; the kinds come in turn.")
    ] = QUESTIONS_PATH
    entropy: Annotated[bool, typer.Option(help="Also measure it, a pass of the model for each question.")] = (
        True
    )

    def measure(self, lab: Lab) -> None:
        survey, setting = Survey.open(lab, read_questions(self.questions)), lab.setting(self.setting)
        rows: list[KindRow] = []
        receipts: list[ReceiptRow] = []
        for number, profile in enumerate(PROFILES):
            cell = profile.cell(setting, max(self.lengths))
            sample = survey.sample(cell, in_turn(self.texts, number))
            rows += kind_rows(
                survey, str(profile), cell, sample, self.lengths, entropy=self.entropy and profile == NOW
            )
            receipts += receipt_rows(str(profile), sample.predicted, sample.found)
        tables = [found_table(rows, setting), answers_table(rows), receipts_table(receipts)]
        lab.finish(self.name, tables, [*rows, *receipts], [kinds_figure(rows)])


@dataclass(frozen=True, slots=True)
class KindRow:
    """One kind of text under one profile.

    Attributes:
        found: by direct detection from token ids, ends of text among them, with a default pool of keys to
            try: for each of `lengths` at each of `FPRS`.
        decades: median log10 p per 100 tokens, at the greatest length.
        covered: share of the tokens that stand in scored blocks, at that length.
        answer_tokens: median length of the answers, which end where the model ends them.
        characters: per token of the answers.
        as_asked: share of the answers that are of the kind.
        changed: share of the answers that are read as other tokens than they were generated as.
        from_tokens, from_text: share of the answers that direct detection finds at the receipts' rate, with
            that pool.
        bits, candidates: mean entropy and number of candidates per token; None: not measured, as the profile
            does not change them.
    """

    profile: str
    kind: str
    texts: int
    lengths: tuple[int, ...]
    found: tuple[tuple[Interval, ...], ...]
    decades: Interval
    covered: Interval
    answer_tokens: Interval
    characters: Interval
    as_asked: Interval
    changed: Interval
    from_tokens: Interval
    from_text: Interval
    bits: Interval | None
    candidates: Interval | None


def kind_rows(
    survey: Survey, profile: str, cell: Cell, sample: Sample, lengths: Sequence[int], *, entropy: bool
) -> Iterator[KindRow]:
    """One row per kind; `entropy` takes passes of the model."""
    known = survey.entropy(cell, sample.texts) if entropy else None
    places = groups(range(len(sample.texts)), lambda place: survey.kind(sample.texts[place].index))
    for kind, of in places.items():
        yield _row(survey, profile, cell, kind, sample.at(of), lengths, known and known.at(of))


def _row(
    survey: Survey,
    profile: str,
    cell: Cell,
    kind: Kind,
    sample: Sample,
    lengths: Sequence[int],
    entropy: TextEntropy | None,
) -> KindRow:
    answers, longest = sample.answers, max(lengths)
    detections = {length: detect_texts(survey.run, cell, sample.texts, length) for length in lengths}
    sizes = np.array([(len(answer.text), answer.tokens.size) for answer in answers], dtype=np.float64)
    return KindRow(
        profile=profile,
        kind=str(kind),
        texts=len(answers),
        lengths=tuple(lengths),
        found=tuple(tuple(one.rate(fpr / POOL) for fpr in FPRS) for one in detections.values()),
        decades=_median(detections[longest].log10_p * 100 / longest),
        covered=mean(detections[longest].covered),
        answer_tokens=_median(sizes[:, 1]),
        characters=bootstrap(lambda of: of[..., 0].sum(axis=-1) / of[..., 1].sum(axis=-1), sizes),
        as_asked=_share([kind.has(answer.text) for answer in answers]),
        changed=_share([answer.changed for answer in answers]),
        from_tokens=_share(sample.predicted <= _LOG10_LIMIT),
        from_text=_share(sample.found["direct"] <= _LOG10_LIMIT),
        bits=mean(np.array(entropy.bits)) if entropy else None,
        candidates=mean(np.array(entropy.candidates)) if entropy else None,
    )


def _share(hits: Sequence[bool] | NDArray[np.bool_]) -> Interval:
    return clopper_pearson(int(np.sum(hits)), len(hits))


def _median(values: NDArray[np.float64]) -> Interval:
    return bootstrap(partial(np.median, axis=-1), values)


def found_table(rows: Sequence[KindRow], setting: SamplingSetting) -> Table:
    """How well each kind is found at equal length."""
    return table_by(
        f"Kinds of text: how many are found, {setting}",
        rows,
        {
            "profile": lambda row: row.profile,
            "kind": lambda row: row.kind,
            "texts": lambda row: row.texts,
            **{
                f"{length} tokens, FPR {rate_name(fpr)}": partial(_found, i, j)
                for i, length in enumerate(rows[0].lengths)
                for j, fpr in enumerate(FPRS)
            },
            "median log10 p per 100 tokens": lambda row: row.decades,
            "scored": lambda row: row.covered.percent(),
        },
        (
            f"Direct detection from token ids, each text under a key of its own; {POOL} keys are tried, as of"
            f" a default pool: p-values are multiplied by {POOL}, but not those of the medians. An end of"
            " text is a token like others. Scored: share of the tokens in blocks whose context is new.",
            "All texts count, also those that are not of the kind that was asked for (see the answers). A"
            " text can be found at 100 tokens and not at 200: its second half left the model no choice.",
            "Intervals are 95 %: Clopper-Pearson for shares, bootstrap over texts for everything else.",
        ),
    )


def _found(length: int, fpr: int, row: KindRow) -> str:
    return row.found[length][fpr].percent()


def answers_table(rows: Sequence[KindRow]) -> Table:
    """What the texts of each kind are like, and what becomes of them when they are read again."""
    return table_by(
        "Kinds of text: the answers",
        rows,
        {
            "profile": lambda row: row.profile,
            "kind": lambda row: row.kind,
            "as asked": lambda row: row.as_asked.percent(),
            "tokens": lambda row: row.answer_tokens,
            "characters per token": lambda row: row.characters,
            "bits per token": lambda row: row.bits,
            "candidates": lambda row: row.candidates,
            "read as other tokens": lambda row: row.changed.percent(),
            f"found from token ids, FPR {rate_name(RULE.fpr)}": lambda row: row.from_tokens.percent(),
            f"found from the words, FPR {rate_name(RULE.fpr)}": lambda row: row.from_text.percent(),
        },
        (
            "Answers end where the model ends them; tokens: their median length. As asked: prose whose"
            " function words are of the language; other kinds with three or more turns, statements, items or"
            " fields.",
            "Entropy and candidates are of the filtered distributions along one text per question. From the"
            " words: decoded, encoded again, and detected directly at any boundary of blocks. Found: with"
            f" {POOL} keys tried.",
        ),
    )


def kinds_figure(rows: Sequence[KindRow]) -> Figure:
    """Evidence against entropy where it was measured, and how many are found under each profile."""
    measured = [(row, row.bits) for row in rows if row.bits]
    evidence = line(
        str(NOW),
        measured,
        lambda of: of[1].estimate,
        lambda of: of[0].decades,
        name=lambda of: of[0].kind,
    )
    shortest, rate = min(rows[0].lengths), FPRS[-1]
    at = rows[0].lengths.index(shortest)
    bars = tuple(
        Series(profile, tuple(row.kind for row in of), tuple(row.found[at][-1] for row in of))
        for profile, of in groups(rows, lambda row: row.profile).items()
    )
    found = Panel(f"{shortest} tokens", "", f"share found at FPR {rate_name(rate)}", bars, "bars")
    panels = [Panel("Evidence", "bits per token", "median log10 p per 100 tokens", (evidence,), "scatter")]
    return Figure("kinds", "Kinds of text", (*panels * bool(measured), found))
