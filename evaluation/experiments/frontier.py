"""`frontier`: power, diversity, edits and cost of the profiles that a deployment may choose between."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
import typer

from ttmark.evaluation.cells import Cell, SamplingSetting, Setting
from ttmark.evaluation.experiments.repeated import distinct_share
from ttmark.evaluation.intervals import Interval, mean
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import Human, Length, Schemes, Settings, TextsInTurn, in_turn
from ttmark.evaluation.profiles import (
    BRANCHES,
    DOCUMENT,
    EDITED_POOLS,
    POOLS,
    SHARES,
    WORD_EDITS,
    Profile,
    ProfileRow,
    measure_profiles,
)
from ttmark.evaluation.report.figure import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups, power_of_ten, table_by

REPEATED_TOKENS = 24
"""Texts whose first tokens differ differ: the share of distinct ones is a lower bound for longer texts."""
BEFORE = Profile("synthid", 2, 4)
LOWER_DEPTH = Profile("synthid", 2, 2, (("depth", 12),))
NOW = Profile("gumbel", 2, 2)
PROFILES = (BEFORE, LOWER_DEPTH, NOW, Profile("gumbel", 2, 1, numbered=True))
REPEATED = {BEFORE: (1, 16, 64), LOWER_DEPTH: (16,), NOW: (16, 64, 256)}
"""Profiles whose completions of the same prompts are counted, and with pools of how many keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Power, diversity, loss by edits and cost of the profiles that a deployment may choose between."""

    name: ClassVar[str] = "frontier"
    title: ClassVar[str] = "Which profile"

    settings: Settings = (Setting.CHAT,)
    texts: TextsInTurn = (64,)
    schemes: Schemes = ("synthid", "gumbel")
    length: Length = 200
    prompt_count: Annotated[int, typer.Option(min=1, help="Prompts that are asked again and again.")] = 20
    completions: Annotated[int, typer.Option(min=2, help="Of each, at the first setting.")] = 40
    human: Human = None

    def measure(self, lab: Lab) -> None:
        rows: list[ProfileRow] = []
        chosen = [profile for profile in PROFILES if profile.scheme in self.schemes]
        if not chosen:
            raise ValueError(f"no profile has a scheme of {', '.join(self.schemes)}")
        pools = {profile: REPEATED[profile] for profile in chosen if profile in REPEATED}
        for number, name in enumerate(self.settings):
            setting, count = lab.setting(name), in_turn(self.texts, number)
            rows += measure_profiles(lab, chosen, setting, self.length, count, self.human)
        crowds = measure_repeats(lab, self, lab.setting(self.settings[0]), pools)
        table, figure = frontier_table(rows, crowds, self), frontier_figure(rows, crowds)
        lab.finish(self.name, [table], [*rows, *crowds], [figure])


@dataclass(frozen=True, slots=True)
class RepeatRow:
    """One profile with one pool.

    Attributes:
        distinct: different completions over completions of a prompt, mean over prompts.
        unmarked: the same without a watermark.
    """

    profile: Profile
    pool: int
    distinct: Interval
    unmarked: Interval


def measure_repeats(
    lab: Lab, plan: Frontier, setting: SamplingSetting, repeated: Mapping[Profile, Sequence[int]]
) -> list[RepeatRow]:
    """One row for each profile and pool."""
    unmarked = _distinct(lab, plan, Cell(None, 1, setting, REPEATED_TOKENS))
    rows = []
    for profile, pools in repeated.items():
        cell = profile.cell(setting, REPEATED_TOKENS)
        rows += [
            RepeatRow(profile, pool, _distinct(lab, plan, replace(cell, pool=pool)), unmarked)
            for pool in pools
        ]
    return rows


def _distinct(lab: Lab, plan: Frontier, cell: Cell) -> Interval:
    """Text i continues prompt i mod prompts."""
    prompts = plan.prompt_count
    texts = lab.run.texts(replace(cell, prompts=prompts), prompts * plan.completions)
    tokens = np.stack([text.tokens() for text in texts])
    return mean(np.array([distinct_share(tokens[prompt::prompts]) for prompt in range(prompts)]))


def frontier_table(rows: Sequence[ProfileRow], crowds: Sequence[RepeatRow], plan: Frontier) -> Table:
    """All rows; diversity beside those at the first setting."""
    setting = rows[0].setting

    def distinct(row: ProfileRow) -> str | None:
        own = [crowd for crowd in crowds if crowd.profile == row.profile and row.setting == setting]
        return ", ".join(f"K {crowd.pool}: {crowd.distinct.percent()}" for crowd in own) or None

    def rate(name: str, number: int) -> Callable[[ProfileRow], str]:
        return lambda row: getattr(row, name)[number].percent()

    def edited(pool: int, number: int) -> Callable[[ProfileRow], str]:
        return lambda row: row.edited_pools[pool][number].percent()

    settings, parts = groups(rows, lambda row: row.setting), tuple(enumerate(SHARES))
    return table_by(
        f"Profiles, {plan.length} tokens, branch budget {BRANCHES}",
        rows,
        {
            "profile": lambda row: row.profile,
            "T": lambda row: f"{row.setting.temperature:g}",
            "texts": lambda row: row.texts,
            "rows per token": lambda row: f"{row.rows:.2f}",
            "entropy kept": lambda row: row.kept.percent(),
            "median p": lambda row: power_of_ten(row.median_log10_p.estimate),
            **{f"TPR at 1e-5, K {pool}": rate("tpr", i) for i, pool in enumerate(POOLS)},
            **{f"{100 * share:.0f} % edited, TPR at 1e-2": rate("edited", i) for i, share in parts},
            **{
                f"{100 * share:.0f} % edited, K {pool}": edited(place, i)
                for place, pool in enumerate(EDITED_POOLS)
                for i, share in parts
            },
            f"inside {DOCUMENT} tokens by people, TPR at 1e-5": lambda row: row.planted.percent(),
            f"distinct of {plan.completions}": distinct,
        },
        (
            "Settings: " + "; ".join(map(str, settings)) + ". Each text has a prompt and a key of its own.",
            "Median p and TPR: direct detection from token ids; p-values are multiplied by K."
            f" Edits: {', '.join(WORD_EDITS)} of single words, each of all texts; aligned detection.",
            f"Distinct: different ones among {plan.completions} completions of each of {plan.prompt_count}"
            f" prompts under one key version, by their first {REPEATED_TOKENS} tokens, which is a lower bound"
            f" for longer texts; without a watermark {crowds[0].unmarked.percent()}.",
            "Intervals are 95 %: Wilson for rates, bootstrap for medians and means.",
        ),
    )


def frontier_figure(rows: Sequence[ProfileRow], crowds: Sequence[RepeatRow]) -> Figure:
    """Power against edits, and power against diversity at the first setting."""
    first = [row for row in rows if row.setting == rows[0].setting]
    by_profile = {row.profile: row for row in first}
    edits = tuple(
        line(
            scheme,
            of,
            lambda row: -row.median_log10_p.estimate,
            lambda row: row.edited[0],
            name=lambda row: _short(row.profile),
        )
        for scheme, of in groups(first, lambda row: row.profile.scheme).items()
    )
    crowded = tuple(
        line(
            scheme,
            of,
            lambda row: 100 * row.distinct.estimate,
            lambda row: by_profile[row.profile].tpr[POOLS.index(row.pool)],
            name=lambda row: f"{_short(row.profile)}, K {row.pool}",
        )
        for scheme, of in groups(crowds, lambda row: row.profile.scheme).items()
    )
    title = f"T {rows[0].setting.temperature:g}"
    edited = f"TPR at 1e-2 with {100 * SHARES[0]:.0f} % edited"
    left = Panel(f"{title}, one key", "median -log10 p", edited, edits, "scatter")
    unmarked = f"{100 * crowds[0].unmarked.estimate:.0f} % without a watermark"
    right = Panel(f"{title}, K keys", f"distinct, % ({unmarked})", "TPR at 1e-5", crowded, "scatter")
    return Figure("frontier", "Profiles", (left, right))


def _short(profile: Profile) -> str:
    """Without the scheme."""
    return str(profile).removeprefix(f"{profile.scheme}, ")
