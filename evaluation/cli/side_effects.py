"""`ttmark eval quality`, `repeated`, `widths`, `runtime`, `cost`: what a watermark does besides marking."""

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
)
from evaluation.experiments.cost import CONTENDERS, cost_figure, cost_table, measure_cost
from evaluation.experiments.quality import QualityPlan, measure_quality, quality_table
from evaluation.experiments.repeated import RepeatedPlan, measure_repeated, repeated_table
from evaluation.experiments.runtime import (
    CANDIDATES,
    RuntimePlan,
    measure_runtime,
    runtime_figure,
    runtime_table,
)
from evaluation.settings import Setting

PromptCount = Annotated[int, typer.Option(min=1, help="Different prompts.")]
Completions = Annotated[int, typer.Option(min=2, help="Per prompt.")]


def quality(
    lab: Lab,
    setting: OneSetting = Setting.ISO_FRESH,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Length = 400,
    texts: Texts = 500,
) -> None:
    """Perplexity, repetition and token distribution, watermarked against not (the paper's Table 6)."""
    chosen = lab.setting(setting)
    plan = QualityPlan(tuple(scheme or SCHEMES), tuple(block_size or [1, 2]), chosen, length, texts)
    rows = measure_quality(lab.run, lab.figures, plan)
    lab.finish("quality", [quality_table(rows, plan, ())], [], rows)


def repeated(
    lab: Lab,
    setting: OneSetting = Setting.ISO_FRESH,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Length = 24,
    prompt_count: PromptCount = 10,
    completions: Completions = 1_000,
) -> None:
    """Many completions of the same prompts under one key: how alike are they?"""
    sizes = tuple(block_size or [1, 2])
    plan = RepeatedPlan(
        tuple(scheme or SCHEMES), sizes, lab.setting(setting), length, prompt_count, completions
    )
    rows = measure_repeated(lab.run, plan)
    lab.finish("repeated", [repeated_table(rows, plan, ())], [], rows)


def widths(
    lab: Lab,
    setting: OneSetting = Setting.ISO_FRESH,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Length = 24,
    prompt_count: PromptCount = 10,
    completions: Completions = 250,
    context_width: Annotated[
        list[int] | None, typer.Option(help="Tokens before a block that key it; may be repeated.")
    ] = None,
) -> None:
    """The same with other context widths, and so longer or shorter warm-ups."""
    plan = RepeatedPlan(
        tuple(scheme or ["synthid", "gumbel"]),
        tuple(block_size or [1, 2]),
        lab.setting(setting),
        length,
        prompt_count,
        completions,
        tuple(context_width or [2, 4, 8]),
    )
    rows = measure_repeated(lab.run, plan)
    lab.finish("widths", [repeated_table(rows, plan, ())], [], rows)


def runtime(
    lab: Lab,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Length = 32,
    texts: Texts = 32,
    repeats: Annotated[int, typer.Option(min=1, help="Batches of each kind.")] = 3,
    candidates: Annotated[list[int] | None, typer.Option(min=1, help="m; may be repeated.")] = None,
) -> None:
    """Time against the number of candidates (the paper's Figure 4), batch 32."""
    schemes, counts = tuple(scheme or SCHEMES[:3]), tuple(candidates or CANDIDATES)
    plan = RuntimePlan(schemes, tuple(block_size or [1, 2]), texts, length, repeats, counts)
    rows = measure_runtime(lab.source, plan, lab.run.seed)
    lab.finish("runtime", [runtime_table(rows, plan, ())], [runtime_figure(rows)], rows)


def cost(
    lab: Lab,
    setting: Settings = None,
    length: Lengths = None,
    texts: TextsBySetting = None,
    scheme: Schemes = None,
) -> None:
    """Detection power against rows of forward passes, by scheme, block size, branch budget and layers."""
    contenders = [item for item in CONTENDERS if item.scheme in (scheme or SCHEMES)]
    lengths, counts = tuple(length or [100, 200]), texts or [200]
    tables, data = [], []
    for number, name in enumerate(setting or [Setting.ISO_FRESH]):
        chosen, count = lab.setting(name), counts[min(number, len(counts) - 1)]
        rows = measure_cost(lab.run, chosen, contenders, lengths, count, lab.prompt_rows)
        note = lab.entropy_note(chosen, max(lengths), count)
        tables.append(cost_table(rows, (note,)))
        data += rows
    lab.finish("cost", tables, [cost_figure(data)], data)
