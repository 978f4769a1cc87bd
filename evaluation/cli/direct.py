"""`ttmark eval direct` and `blocks`."""

from evaluation.cli.lab import Lab, open_lab
from evaluation.cli.options import (
    DEFAULT_OUT,
    DEMO,
    SCHEMES,
    Batch,
    BlockSizes,
    Lengths,
    Model,
    OneSetting,
    Out,
    Prompts,
    Schemes,
    Seed,
    Settings,
    Texts,
    Threads,
)
from evaluation.experiments.direct import DirectPlan, DirectRow, direct_tables, measure_direct
from evaluation.model_figures import entropy_note
from evaluation.report.figure import Figure, Panel, Series
from evaluation.settings import Setting

ENTROPY_TEXTS = 30
CALIBRATION_TEXTS = 100


def direct(
    setting: Settings = None,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Lengths = None,
    texts: Texts = 100,
    model: Model = DEMO,
    prompts: Prompts = None,
    out: Out = DEFAULT_OUT,
    seed: Seed = 0,
    threads: Threads = None,
    batch: Batch = 32,
) -> None:
    """Direct detection: TPR at fixed FPR, median p-value, and the gain in mean z over single tokens."""
    with open_lab(model, prompts, out, seed, threads, batch) as lab:
        settings = setting or [Setting.STRICT, Setting.DEFAULT]
        plans = [
            DirectPlan(
                tuple(scheme or ["synthid"]),
                tuple(block_size or [1, 2]),
                lab.setting(name, CALIBRATION_TEXTS),
                tuple(length or [200]),
                texts,
            )
            for name in settings
        ]
        run_direct(lab, "direct", plans)


def blocks(
    setting: OneSetting = Setting.ISO,
    scheme: Schemes = None,
    length: Lengths = None,
    texts: Texts = 500,
    model: Model = DEMO,
    prompts: Prompts = None,
    out: Out = DEFAULT_OUT,
    seed: Seed = 0,
    threads: Threads = None,
    batch: Batch = 32,
) -> None:
    """Blocks of one, two and three tokens (the paper's Tables 1 and 7), by default at its entropy."""
    with open_lab(model, prompts, out, seed, threads, batch) as lab:
        plan = DirectPlan(
            tuple(scheme or SCHEMES),
            (1, 2, 3),
            lab.setting(setting, CALIBRATION_TEXTS),
            tuple(length or [200, 400]),
            texts,
        )
        run_direct(lab, "blocks", [plan])


def run_direct(lab: Lab, experiment: str, plans: list[DirectPlan]) -> None:
    """Measures the plans and writes one result."""
    measured = []
    for plan in plans:
        report = lab.figures.entropy(plan.setting, max(plan.lengths), min(ENTROPY_TEXTS, plan.texts))
        rows = measure_direct(lab.run, plan)
        measured.append((rows, direct_tables(rows, (entropy_note(report),))))
    tables = tuple(table for _, found in measured for table in found)
    data = tuple(row.data() for rows, _ in measured for row in rows)
    lab.finish(experiment, tables, (_figure(experiment, [rows for rows, _ in measured]),), data)


def _figure(experiment: str, measured: list[list[DirectRow]]) -> Figure:
    panels = []
    for rows in measured:
        longest = max(row.length for row in rows)
        kept = [row for row in rows if row.length == longest]
        series = []
        for block_size in sorted({row.block_size for row in kept}):
            chosen = [row for row in kept if row.block_size == block_size]
            names = tuple(row.scheme for row in chosen)
            series.append(Series(f"r = {block_size}", names, tuple(row.z for row in chosen)))
        panels.append(Panel(f"{rows[0].setting}, {longest} tokens", "", "mean z", tuple(series), "bars"))
    return Figure(experiment, "Direct detection", tuple(panels))
