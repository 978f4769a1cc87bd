"""`ttmark eval direct`, `blocks`, `topp`, `strict` and `calibrate`: direct detection."""

from typing import Annotated

import typer

from evaluation.cli.lab import Lab
from evaluation.cli.options import (
    SCHEMES,
    BlockSizes,
    Length,
    Lengths,
    OneSetting,
    Schemes,
    Settings,
    Texts,
    TextsBySetting,
    TextsBySize,
)
from evaluation.experiments.bounds import bounds_table
from evaluation.experiments.direct import DirectPlan, DirectRow, direct_figure, direct_tables, measure_direct
from evaluation.experiments.strict import StrictRow, measure_strict, strict_table
from evaluation.experiments.topp import TOP_P, measure_topp, topp_figure, topp_table
from evaluation.model_figures import entropy_note
from evaluation.report.table import Table
from evaluation.settings import SamplingSetting, Setting


def direct(
    lab: Lab,
    setting: Settings = None,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Lengths = None,
    texts: TextsBySetting = None,
) -> None:
    """Direct detection: TPR at fixed FPR, median p-value, and the gain in mean z over single tokens."""
    settings = setting or [Setting.STRICT, Setting.DEFAULT]
    counts = texts or [100]
    plans = [
        DirectPlan(
            tuple(scheme or ["synthid"]),
            tuple(block_size or [1, 2]),
            lab.setting(name),
            tuple(length or [200]),
            counts[min(number, len(counts) - 1)],
        )
        for number, name in enumerate(settings)
    ]
    run_direct(lab, "direct", plans)


def blocks(
    lab: Lab,
    setting: Settings = None,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Lengths = None,
    texts: TextsBySize = None,
) -> None:
    """Blocks of one, two and three tokens (the paper's Tables 1 and 7), at the paper's entropy."""
    plans = [
        _blocks_plan(lab.setting(name), scheme, block_size, length, texts)
        for name in setting or [Setting.ISO, Setting.ISO_FRESH]
    ]
    run_direct(lab, "blocks", plans)


def gains(
    lab: Lab,
    setting: OneSetting = Setting.ISO_FRESH,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Lengths = None,
    texts: TextsBySize = None,
) -> None:
    """Where the gains of blocks come from: scores, coverage, and the bounds of Theorems 1 and 2."""
    plan = _blocks_plan(lab.setting(setting), scheme, block_size, length, texts)
    report = lab.entropy(plan.setting, max(plan.lengths), plan.texts, 3)
    rows = measure_direct(lab.run, plan)
    by_length = [[row for row in rows if row.length == tokens] for tokens in plan.lengths]
    tables = [bounds_table(found, report, (entropy_note(report),)) for found in by_length]
    lab.finish("gains", tables, [], rows)


def _blocks_plan(
    setting: SamplingSetting,
    schemes: list[str] | None,
    block_sizes: list[int] | None,
    lengths: list[int] | None,
    texts: list[int] | None,
) -> DirectPlan:
    """What `blocks` and `gains` share; `texts` are of the sizes in turn, the last of all that follow."""
    sizes, counts = tuple(block_sizes or [1, 2, 3]), texts or [500]
    by_size = tuple((size, counts[min(number, len(counts) - 1)]) for number, size in enumerate(sizes))
    return DirectPlan(
        tuple(schemes or SCHEMES), sizes, setting, tuple(lengths or [200, 400]), max(counts), fewer=by_size
    )


def topp(
    lab: Lab,
    setting: OneSetting = Setting.ISO_FRESH,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Length = 200,
    texts: Texts = 100,
    top_p: Annotated[list[float] | None, typer.Option(help="May be repeated.")] = None,
) -> None:
    """Detection against top-p (the paper's Figure 3)."""
    plan = DirectPlan(
        tuple(scheme or SCHEMES[:3]), tuple(block_size or [1, 2]), lab.setting(setting), (length,), texts
    )
    rows = measure_topp(lab.run, plan, top_p or TOP_P)
    lab.finish("topp", [topp_table(rows, ())], [topp_figure(rows)], rows)


def strict(
    lab: Lab,
    setting: Settings = None,
    scheme: Schemes = None,
    length: Length = 200,
    texts: Texts = 300,
) -> None:
    """Strict sampling (the paper's Table 2), and the same where single tokens nearly fail."""
    tables: list[Table] = []
    data: list[StrictRow] = []
    for name in setting or [Setting.STRICT]:
        chosen = lab.setting(name)
        plan = DirectPlan(tuple(scheme or SCHEMES), (1, 2), chosen, (length,), texts)
        note = lab.entropy_note(chosen, length, texts)
        report = lab.entropy(chosen, length, texts)
        for at_weak_length in (False, True):
            rows = measure_strict(lab.run, plan, lab.prompt_rows, at_weak_length=at_weak_length)
            title = f"Strict sampling, {chosen}"
            if at_weak_length:
                title += ", at the length where single tokens reach about 7.5 % at FPR 0.001 %"
            tables.append(strict_table(rows, report, title, (note,)))
            data += rows
    lab.finish("strict", tables, [], data)


def calibrate(lab: Lab, setting: OneSetting = Setting.ISO) -> None:
    """The temperature at which single-token SynthID-Text has the paper's median p-value."""
    lab.console.print(f"{setting}: {lab.setting(setting)}")


def run_direct(lab: Lab, experiment: str, plans: list[DirectPlan]) -> None:
    """Measures the plans and writes one result."""
    tables: list[Table] = []
    measured: list[list[DirectRow]] = []
    for plan in plans:
        note = lab.entropy_note(plan.setting, max(plan.lengths), plan.texts)
        rows = measure_direct(lab.run, plan)
        tables += direct_tables(rows, (note,))
        measured.append(rows)
    data = [row for rows in measured for row in rows]
    lab.finish(experiment, tables, [direct_figure(experiment, measured)], data)
