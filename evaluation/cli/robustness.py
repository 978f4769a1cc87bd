"""`ttmark eval edits`, `beta` and `localized`: watermarks in edited texts and in parts of documents."""

from typing import Annotated

import numpy as np
import typer

from evaluation.cli.lab import Lab
from evaluation.cli.options import (
    HUMAN,
    PAPER_SCHEMES,
    SCHEMES,
    BlockSizes,
    Human,
    Length,
    OneSetting,
    Schemes,
    Texts,
)
from evaluation.edits.offline import EDITS, Material
from evaluation.experiments.beta import beta_figure, beta_table
from evaluation.experiments.edits import EditPlan, edit_table, measure_edit, offline_edit
from evaluation.experiments.localized import LocalizedPlan, localized_table, measure_localized
from evaluation.human import read_human_texts
from evaluation.settings import Setting

BETAS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)

EditNames = Annotated[
    list[str] | None, typer.Option("--edit", help=f"May be repeated: unedited, {', '.join(EDITS)}.")
]
Share = Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of the passage that is edited.")]


def edits(
    lab: Lab,
    edit: EditNames = None,
    share: Share = 0.3,
    setting: OneSetting = Setting.ISO,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Length = 400,
    texts: Texts = 300,
    human: Human = HUMAN,
) -> None:
    """Detection by alignment after edits (the paper's Table 3, with edits that need no other model)."""
    plan = EditPlan(
        tuple(scheme or SCHEMES),
        tuple(block_size or [1, 2]),
        lab.setting(setting),
        length,
        texts,
        share=share,
    )
    note = lab.entropy_note(plan.setting, length, texts)
    material = Material.of(read_human_texts(human))
    tables, data = [], []
    for name in edit or ["unedited", *EDITS]:
        editor = offline_edit(name, share, material, lab.run.seed)
        rows = measure_edit(lab.run, plan, name, editor, lab.source.tokenizer)
        tables.append(edit_table(rows, plan, (note,)))
        data += rows
    lab.finish("edits", tables, [], data)


def beta(
    lab: Lab,
    edit: EditNames = None,
    share: Share = 0.3,
    setting: OneSetting = Setting.ISO,
    scheme: Schemes = None,
    length: Length = 400,
    texts: Texts = 200,
    human: Human = HUMAN,
) -> None:
    """The skip penalty of the aligned detector (the paper's Figure 5)."""
    plan = EditPlan(tuple(scheme or PAPER_SCHEMES), (2,), lab.setting(setting), length, texts, BETAS, share)
    material = Material.of(read_human_texts(human))
    rows = []
    for name in edit or ["rewrite", "substitute", "insert"]:
        editor = offline_edit(name, share, material, lab.run.seed)
        rows += measure_edit(lab.run, plan, name, editor, lab.source.tokenizer)
    lab.finish("beta", [beta_table(rows, plan, ())], [beta_figure(rows)], rows)


def localized(
    lab: Lab,
    document_tokens: Annotated[
        list[int] | None, typer.Option(help="Length of the documents; may be repeated.")
    ] = None,
    spans: Annotated[list[int] | None, typer.Option(help="Spans per document; may be repeated.")] = None,
    setting: OneSetting = Setting.ISO,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    documents: Annotated[int, typer.Option(min=2, help="With a span, and as many without.")] = 100,
    human: Human = HUMAN,
) -> None:
    """Spans inside documents by people (the paper's Table 4), `scan` beside `waterseeker`."""
    tokenizer = lab.source.tokenizer
    texts = [np.array(tokenizer.encode(text), dtype=np.int64) for text in read_human_texts(human)]
    texts = [tokens for tokens in texts if tokens.size]
    chosen = lab.setting(setting)
    tables, data = [], []
    for count in spans or [1]:
        for length in document_tokens or [10_000]:
            plan = LocalizedPlan(
                tuple(scheme or PAPER_SCHEMES), tuple(block_size or [1, 2]), chosen, documents, length, count
            )
            rows = measure_localized(lab.run, plan, texts)
            tables.append(localized_table(rows, chosen, ()))
            data += rows
    lab.finish("localized", tables, [], data)
