"""`stealing`: text that the key recognises, by one who may generate with it and runs the public model."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, ClassVar

import numpy as np
import typer

from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import SamplingSetting, Setting
from ttmark.evaluation.forger import Forger, ForgeryCell, VictimCell
from ttmark.evaluation.intervals import Interval, clopper_pearson
from ttmark.evaluation.options import OneSetting, Schemes
from ttmark.evaluation.report.plot_data import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups, power_of_ten, rate_name, table_by
from ttmark.evaluation.run_folder import Run
from ttmark.shared.watermark import Watermark, corrected, detect_direct, scored_positions
from ttmark.shared.watermark.schemes.registry import scheme_title

FPRS = (1e-3, 1e-5)
SHORTEST, LONGEST = 130, 200
MOST_QUICK = 8


@dataclass(frozen=True, slots=True)
class Stealing:
    """Forgeries from a victim's completions and the public model, detected with the real key."""

    name: ClassVar[str] = "stealing"
    title: ClassVar[str] = "Stealing a key"

    setting: OneSetting = Setting.DEFAULT
    schemes: Schemes = ("mcmark", "synthid")
    context_widths: Annotated[
        tuple[int, ...],
        typer.Option(
            "--context-width",
            min=1,
            help="Tokens before a block that key it; may be repeated; default: 2 and 4, with --quick 2.",
        ),
    ] = ()
    completions: Annotated[
        tuple[int, ...],
        typer.Option(
            min=1,
            help="That the attacker collects; may be repeated; default: 32, 80 and 224, with --quick 32.",
        ),
    ] = ()
    forgeries: Annotated[
        int,
        typer.Option(
            min=1, help=f"Texts that the attacker makes of them, with --quick at most {MOST_QUICK}."
        ),
    ] = 16
    rotate_after: Annotated[
        tuple[int, ...],
        typer.Option(min=0, help="Marked tokens after which the key is rotated, 0 never; may be repeated."),
    ] = (0,)
    pools: Annotated[
        tuple[int, ...],
        typer.Option("--pool", min=1, help="Keys, one drawn for each completion; may be repeated."),
    ] = (1,)
    prompt_count: Annotated[
        int | None, typer.Option(min=1, help="Different prompts of the completions; default: all.")
    ] = None
    new_prompts: Annotated[
        bool, typer.Option(help="Forgeries continue prompts that were never sent, or those that were.")
    ] = True
    control: Annotated[bool, typer.Option(help="Also steal from outputs without a watermark.")] = True
    quick: Annotated[bool, typer.Option("--quick", help="Small samples: two minutes on the demo model.")] = (
        False
    )

    def measure(self, lab: Lab) -> None:
        plan = self.plan(lab.setting(self.setting))
        rows = measure_stealing(lab.run, plan)
        lab.finish(self.name, [stealing_table(rows, plan)], rows, [stealing_figure(rows)])

    def plan(self, setting: SamplingSetting) -> "StealingPlan":
        """What these options measure."""
        widths = self.context_widths or ((2,) if self.quick else (2, 4))
        return StealingPlan(
            (*product(self.schemes, widths), *[(None, 2)] * self.control),
            setting,
            self.completions or ((32,) if self.quick else (32, 80, 224)),
            min(self.forgeries, MOST_QUICK) if self.quick else self.forgeries,
            tuple(limit or None for limit in self.rotate_after),
            self.pools,
            self.prompt_count,
            self.new_prompts,
        )


@dataclass(frozen=True, slots=True)
class StealingPlan:
    """What to measure.

    Attributes:
        targets: scheme and context width; None as the scheme is the control, outputs without a watermark.
        asked: numbers of completions that the attacker collects, of `tokens` tokens each.
        rotate_after: marked tokens after which the key is rotated; None: never. With a limit only the most
            completions are looked at.
        pools: numbers of keys, one of which is drawn for each completion.
        prompts: different prompts of the completions.
        new_prompts: forgeries continue prompts that were never sent, else the ones that were.
    """

    targets: tuple[tuple[str | None, int], ...]
    setting: SamplingSetting
    asked: tuple[int, ...]
    forgeries: int
    rotate_after: tuple[int | None, ...] = (None,)
    pools: tuple[int, ...] = (1,)
    prompts: int | None = None
    new_prompts: bool = True
    block_size: int = 2
    tokens: int = LONGEST
    max_branches: int | None = 8


@dataclass(frozen=True, slots=True)
class StealingRow:
    """The forgeries from one number of completions.

    Attributes:
        versions: keys that detection tries: those that the completions were made with, or the pool.
        known: mean share of a forgery's blocks whose context the attacker had seen.
        success: share of forgeries with a p-value below each of `FPRS`.
    """

    scheme: str | None
    context_width: int
    rotate_after: int | None
    asked: int
    versions: int
    known: float
    median_log10_p: float
    success: tuple[Interval, ...]


def measure_stealing(run: Run, plan: StealingPlan) -> list[StealingRow]:
    """One row for each target, pool or limit, and number of completions."""
    return [
        _steal(run, plan, _victim(plan, scheme, width, limit, pool), width, asked)
        for (scheme, width), limit, pool in product(plan.targets, plan.rotate_after, plan.pools)
        for asked in (plan.asked if limit is None else (max(plan.asked),))
    ]


def _victim(plan: StealingPlan, scheme: str | None, width: int, limit: int | None, pool: int) -> VictimCell:
    return VictimCell(
        scheme,
        plan.block_size,
        plan.setting,
        plan.tokens,
        width if scheme else None,
        max_branches=plan.max_branches,
        prompts=plan.prompts,
        pool=pool if pool > 1 else None,
        texts_per_key=limit and max(1, limit // plan.tokens),
        skipped_prompts=plan.forgeries if plan.new_prompts else 0,
    )


def _steal(run: Run, plan: StealingPlan, victim: VictimCell, width: int, asked: int) -> StealingRow:
    scheme = victim.scheme or "synthid"
    watermark = Watermark(scheme, plan.block_size, width)
    forger = Forger(watermark, [text.tokens() for text in run.texts(victim, asked)])
    cell = ForgeryCell(
        scheme, plan.block_size, plan.setting, LONGEST, width, victim=victim, asked=asked, forger=forger
    )
    keys = victim.keys(run.seed, range(victim.pool or 1 + victim.version(asked - 1)))
    log10_p, known = [], []
    for text in run.texts(cell, plan.forgeries):
        length = SHORTEST + (LONGEST - SHORTEST) * text.index // max(1, plan.forgeries - 1)
        tokens = text.tokens(length)
        found = min(detect_direct(watermark, key, tokens).log10_p for key in keys)
        log10_p.append(corrected(found, len(keys)))
        starts = scored_positions(tokens, plan.block_size, width)
        contexts = (tuple(tokens[start - width : start].tolist()) for start in starts)
        known.append(np.mean([context in forger.seen for context in contexts]))
    success = tuple(clopper_pearson(sum(p < np.log10(fpr) for p in log10_p), plan.forgeries) for fpr in FPRS)
    return StealingRow(
        victim.scheme,
        width,
        victim.texts_per_key and victim.texts_per_key * plan.tokens,
        asked,
        len(keys),
        float(np.mean(known)),
        float(np.median(log10_p)),
        success,
    )


def stealing_table(rows: Sequence[StealingRow], plan: StealingPlan) -> Table:
    """All rows."""
    asked_with = "were never sent" if plan.new_prompts else "the completions were asked for with"
    return table_by(
        f"Stealing: {plan.forgeries} forgeries of {SHORTEST} to {LONGEST} tokens, r={plan.block_size},"
        f" {plan.setting}",
        rows,
        {
            "": lambda row: scheme_title(row.scheme) if row.scheme else "no watermark",
            "H": lambda row: row.context_width,
            "rotation after tokens": lambda row: row.rotate_after or "never",
            "completions": lambda row: row.asked,
            "keys": lambda row: row.versions,
            "contexts known": lambda row: f"{row.known:.0%}",
            "median p": lambda row: power_of_ten(row.median_log10_p),
            f"p < {rate_name(FPRS[0])}": lambda row: row.success[0].percent(),
            f"p < {rate_name(FPRS[1])}": lambda row: row.success[1].percent(),
        },
        (
            f"Completions of {plan.tokens} tokens. Direct detection with the real key, corrected for the"
            " keys that are tried, versions or a pool; 95 % intervals by Clopper and Pearson.",
            f"Forgeries continue prompts that {asked_with}.",
        ),
    )


def stealing_figure(rows: Sequence[StealingRow]) -> Figure:
    """Success against completions, one panel for each p-value."""

    def label(row: StealingRow) -> str:
        name = f"{scheme_title(row.scheme)}, H = {row.context_width}" if row.scheme else "no watermark"
        name += f", {row.versions} keys" * (row.versions > 1)
        return name + f", rotated after {row.rotate_after}" * bool(row.rotate_after)

    kinds = groups(rows, label)

    def panel(number: int) -> Panel:
        lines = (
            line(name, of, lambda row: row.asked, lambda row: row.success[number])
            for name, of in kinds.items()
        )
        axes = "completions collected", "share of forgeries"
        return Panel(f"p < {rate_name(FPRS[number])}", *axes, tuple(lines), log_x=True)

    return Figure("stealing", "Forgeries that the real key recognises", tuple(map(panel, range(len(FPRS)))))
