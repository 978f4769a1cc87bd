"""`ttmark eval edits`, `beta` and `localized`: watermarks in edited texts and in parts of documents."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
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
    Lengths,
    OneSetting,
    Schemes,
    Texts,
)
from evaluation.edits.endpoint import Endpoint, Usage, open_endpoint
from evaluation.edits.offline import EDITS, Material
from evaluation.edits.paraphrase import PROMPTS, EndpointEdit
from evaluation.experiments.beta import beta_figure, beta_table
from evaluation.experiments.edits import EditPlan, EditRow, EditTexts, edit_table, measure_edit, offline_edit
from evaluation.experiments.localized import LocalizedPlan, localized_table, measure_localized
from evaluation.human import read_human_texts
from evaluation.report.table import Table
from evaluation.settings import Setting

BETAS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)

EditNames = Annotated[
    list[str] | None,
    typer.Option(
        "--edit",
        help=f"May be repeated: unedited, {', '.join(EDITS)}; with an endpoint {', '.join(PROMPTS)}.",
    ),
]
Share = Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of the passage that is edited.")]


def edits(
    lab: Lab,
    edit: EditNames = None,
    share: Share = 0.3,
    setting: OneSetting = Setting.ISO_FRESH,
    scheme: Schemes = None,
    block_size: BlockSizes = None,
    length: Lengths = None,
    texts: Texts = 300,
    human: Human = HUMAN,
    endpoint: Annotated[
        str | None, typer.Option(help="OpenAI-compatible, up to and with /v1; adds its edits.")
    ] = None,
    endpoint_model: Annotated[str, typer.Option(help="Model to ask there.")] = "",
    endpoint_key: Annotated[Path | None, typer.Option(help="File with the endpoint's API key.")] = None,
    endpoint_chat: Annotated[bool, typer.Option(help="Chat completions, or plain ones.")] = True,
    prompt_price: Annotated[float, typer.Option(help="Of a million prompt tokens there.")] = 0.0,
    completion_price: Annotated[float, typer.Option(help="Of a million completion tokens.")] = 0.0,
) -> None:
    """Detection by alignment after edits, offline or through an endpoint (the paper's Table 3)."""
    plan = EditPlan(
        tuple(scheme or SCHEMES),
        tuple(block_size or [1, 2]),
        lab.setting(setting),
        tuple(length or [200, 400]),
        texts,
        share=share,
    )
    note = lab.entropy_note(plan.setting, max(plan.lengths), texts)
    material = Material.of(read_human_texts(human))
    usage = Usage()
    service = None
    if endpoint:
        key = endpoint_key.read_text().strip() if endpoint_key else ""
        service = Endpoint(
            endpoint.rstrip("/"), endpoint_model, key, endpoint_chat, prompt_price, completion_price
        )
    tables: list[Table] = []
    data: list[EditRow] = []
    for name in edit or ["unedited", *EDITS, *(PROMPTS if service else ())]:
        if name in PROMPTS and service:
            opened = partial(open_endpoint, service, lab.run.folder / "endpoint", usage)
            editor: EditTexts = EndpointEdit(name, share, lab.run.seed, opened)
        else:
            editor = offline_edit(name, share, material, lab.run.seed)
        rows = measure_edit(lab.run, plan, name, editor, lab.source.tokenizer)
        tables += [edit_table(_of(rows, tokens), plan, (note,)) for tokens in plan.lengths]
        data += rows
    if service:
        lab.console.print(
            f"endpoint: {usage.requests} requests, {usage.cached} answers from the cache,"
            f" {usage.prompt_tokens} + {usage.completion_tokens} tokens, cost {usage.cost(service):.4f}"
        )
    lab.finish("edits", tables, [], data)


def beta(
    lab: Lab,
    edit: EditNames = None,
    share: Share = 0.3,
    setting: OneSetting = Setting.ISO_FRESH,
    scheme: Schemes = None,
    length: Lengths = None,
    texts: Texts = 200,
    human: Human = HUMAN,
) -> None:
    """The skip penalty of the aligned detector (the paper's Figure 5)."""
    lengths = tuple(length or [200, 400])
    plan = EditPlan(tuple(scheme or PAPER_SCHEMES), (2,), lab.setting(setting), lengths, texts, BETAS, share)
    material = Material.of(read_human_texts(human))
    rows = []
    for name in edit or ["rewrite", "substitute", "insert"]:
        editor = offline_edit(name, share, material, lab.run.seed)
        rows += measure_edit(lab.run, plan, name, editor, lab.source.tokenizer)
    tables = [beta_table(_of(rows, tokens), plan, ()) for tokens in lengths]
    lab.finish("beta", tables, [beta_figure(rows)], rows)


def localized(
    lab: Lab,
    document_tokens: Annotated[
        list[int] | None, typer.Option(help="Length of the documents; may be repeated.")
    ] = None,
    spans: Annotated[list[int] | None, typer.Option(help="Spans per document; may be repeated.")] = None,
    setting: OneSetting = Setting.ISO_FRESH,
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


def _of(rows: Sequence[EditRow], length: int) -> list[EditRow]:
    return [row for row in rows if row.length == length]
