"""`frontier`: power, diversity, edits and cost of the profiles that a deployment may choose between."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation import word_edits
from ttmark.evaluation.cells import Setting
from ttmark.evaluation.crowds import OPENING, REQUESTS, CrowdRow, crowds_table, measure_crowds
from ttmark.evaluation.lab import Lab
from ttmark.evaluation.options import Human, Length, Settings, TextsInTurn, in_turn
from ttmark.evaluation.profiles import BRANCHES, DOCUMENT, POOLS, Profile, ProfileRow, measure_profiles
from ttmark.evaluation.report.figure import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups, power_of_ten, rate_name, table_by

BEFORE = Profile("synthid", 2, 4)
LOWER_DEPTH = Profile("synthid", 2, 2, (("depth", 12),))
NOW = Profile("gumbel", 2, 2)
PROFILES = (
    BEFORE,
    Profile("synthid", 1, 4),
    LOWER_DEPTH,
    NOW,
    Profile("gumbel", 1, 4),
    Profile("gumbel", 1, 2),
)
REPEATED = {NOW: None, BEFORE: OPENING}
"""Profiles whose completions under one key are counted, and their length; None: that of the texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """Power, diversity, loss by edits and cost of the profiles that a deployment may choose between."""

    name: ClassVar[str] = "frontier"
    title: ClassVar[str] = "Which profile"

    settings: Settings = (Setting.CHAT,)
    texts: TextsInTurn = (64,)
    profiles: Annotated[
        tuple[str, ...],
        typer.Option(
            "--profile",
            help="Those whose name begins so, say `gumbel` or `gumbel, r 2`; may be repeated; default: all.",
        ),
    ] = ()
    length: Length = 200
    prompt_count: Annotated[int, typer.Option(min=1, help="Prompts that are asked again and again.")] = 20
    same_key: Annotated[
        tuple[int, ...],
        typer.Option(
            min=2,
            help="Completions of each of these prompts under one key; repeated: at the first setting, the"
            " second, ...",
        ),
    ] = (16,)
    unmarked: Annotated[
        tuple[int, ...],
        typer.Option(min=2, help=f"The same without a watermark, {OPENING} tokens."),
    ] = (50,)
    diversity: Annotated[bool, typer.Option(help="Also ask prompts again and again.")] = True
    entropy: Annotated[bool, typer.Option(help="Also measure what each leaves of it.")] = True
    human: Human = None

    def measure(self, lab: Lab) -> None:
        chosen = self.chosen()
        rows: list[ProfileRow] = []
        crowds: list[CrowdRow] = []
        for number, name in enumerate(self.settings):
            setting, count = lab.setting(name), in_turn(self.texts, number)
            rows += measure_profiles(
                lab, chosen, setting, self.length, count, self.human, entropy=self.entropy
            )
            if self.diversity:
                lengths = {
                    profile: REPEATED[profile] or self.length for profile in chosen if profile in REPEATED
                }
                counts = in_turn(self.same_key, number), in_turn(self.unmarked, number)
                crowds += measure_crowds(lab, setting, lengths, self.prompt_count, *counts)
        tables = [frontier_table(rows, self), edits_table(rows, self)]
        tables += [crowds_table(crowds, self.prompt_count)] if crowds else []
        lab.finish(self.name, tables, [*rows, *crowds], [frontier_figure(rows, crowds)])

    def chosen(self) -> list[Profile]:
        """The profiles to measure.

        Raises:
            ValueError: none is called so.
        """
        if not self.profiles:
            return list(PROFILES)
        found = [profile for profile in PROFILES if str(profile).startswith(self.profiles)]
        if not found:
            raise ValueError(f"no profile is called {' or '.join(self.profiles)}")
        return found


def frontier_table(rows: Sequence[ProfileRow], plan: Frontier) -> Table:
    """All rows, unedited."""

    def rate(number: int) -> Callable[[ProfileRow], str]:
        return lambda row: row.tpr[number].percent()

    settings = groups(rows, lambda row: row.setting)
    return table_by(
        f"Profiles, {plan.length} tokens, branch budget {BRANCHES}",
        rows,
        {
            "profile": lambda row: row.profile,
            "T": lambda row: f"{row.setting.temperature:g}",
            "texts": lambda row: row.texts,
            "rows per token": lambda row: f"{row.rows:.2f}",
            **({"entropy kept": lambda row: row.kept and row.kept.percent()} if plan.entropy else {}),
            "median p": lambda row: power_of_ten(row.median_log10_p.estimate),
            **{f"TPR at 1e-5, K {pool}": rate(i) for i, pool in enumerate(POOLS)},
            f"inside {DOCUMENT} tokens by people, TPR at 1e-5": lambda row: row.planted.percent(),
        },
        (
            "Settings: " + "; ".join(map(str, settings)) + ". Each text has a key of its own, and prompts are"
            " taken in turn.",
            "Median p and TPR: direct detection from token ids; p-values are multiplied by K. Inside: `scan`,"
            " K 1.",
            "Intervals are 95 %: Wilson for rates, bootstrap for medians and means.",
        ),
    )


def edits_table(rows: Sequence[ProfileRow], plan: Frontier) -> Table:
    """All rows after edits."""
    cases = [
        (row, share, pool, [edited for edited in row.edits if (edited.share, edited.pool) == (share, pool)])
        for row in rows
        for share in word_edits.SHARES
        for pool in word_edits.POOLS
    ]
    columns: dict[str, Callable[..., object]] = {
        "profile": lambda case: case[0].profile,
        "T": lambda case: f"{case[0].setting.temperature:g}",
        "words edited": lambda case: f"{100 * case[1]:.0f} %",
        "K": lambda case: case[2],
    }
    for number, fpr in enumerate(word_edits.FPRS):
        columns[f"TPR at {rate_name(fpr)}"] = lambda case, n=number: case[3][n].every.percent()
    return table_by(
        f"Single words edited, {plan.length} tokens",
        cases,
        columns,
        (
            "TPR of aligned detection from the edited text; p-values are multiplied by K. Words are"
            " substituted, deleted and inserted, each in every text.",
        ),
    )


def frontier_figure(rows: Sequence[ProfileRow], crowds: Sequence[CrowdRow]) -> Figure:
    """At the first setting: power against edits with one key, and power against diversity with K keys."""
    first = [row for row in rows if row.setting == rows[0].setting]
    edits = tuple(
        line(
            scheme,
            of,
            lambda row: -row.median_log10_p.estimate,
            lambda row: row.edits[0].every,
            name=lambda row: _short(row.profile),
        )
        for scheme, of in groups(first, lambda row: row.profile.scheme).items()
    )
    title = f"T {rows[0].setting.temperature:g}"
    edited = f"TPR at {word_edits.FPRS[0]:g} with {100 * word_edits.SHARES[0]:.0f} % edited"
    panels = [Panel(f"{title}, one key", "median -log10 p", edited, edits, "scatter")]
    tpr = {row.profile: row.tpr for row in first}
    crowded = tuple(
        line(
            f"{crowd.profile}, first {crowd.tokens} tokens",
            zip(POOLS, crowd.distinct, tpr[crowd.profile], strict=True),
            lambda point: 100 * point[1].estimate,
            lambda point: point[2],
            name=lambda point: f"K {point[0]}",
        )
        for crowd in crowds
        if crowd.setting == rows[0].setting and crowd.requests == REQUESTS[-1]
    )
    if crowded:
        axis = f"different of {REQUESTS[-1]}, %"
        panels.append(Panel(f"{title}, K keys", axis, "TPR at 1e-5", crowded, "scatter"))
    return Figure("frontier", "Profiles", tuple(panels))


def _short(profile: Profile) -> str:
    """Without the scheme."""
    return str(profile).removeprefix(f"{profile.scheme}, ")
