"""`edits`, `beta`: detection after edits, and the skip penalty of alignment (paper, Table 3, Figure 5)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.endpoint import Endpoint, EndpointClient, Usage
from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import SamplingSetting
from ttmark.evaluation.experiments.edited_texts import (
    EditNames,
    EditOptions,
    EditRow,
    EditTexts,
    measure_edit,
    offline_edit,
)
from ttmark.evaluation.options import PAPER_SCHEMES, BlockSizes, Schemes, Texts
from ttmark.evaluation.paper import EDITS as PAPER
from ttmark.evaluation.paper import row_name
from ttmark.evaluation.report.plot_data import Figure, Panel, line
from ttmark.evaluation.report.result import Table, groups, table_by
from ttmark.evaluation.text_edits import EDITS, PROMPTS, EndpointEdit, Material
from ttmark.shared.watermark.schemes.registry import scheme_title

BETAS = (0.5, 1.0, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Edits(EditOptions):
    """Aligned detection after edits (the paper's Table 3), beside direct detection."""

    name: ClassVar[str] = "edits"
    title: ClassVar[str] = "Edits"

    block_sizes: BlockSizes = (1, 2)
    endpoint: Annotated[
        str | None, typer.Option(help="OpenAI-compatible, up to and with /v1; adds its edits.")
    ] = None
    endpoint_model: Annotated[str, typer.Option(help="Model to ask there.")] = ""
    endpoint_key: Annotated[Path | None, typer.Option(help="File with the endpoint's API key.")] = None
    endpoint_chat: Annotated[bool, typer.Option(help="Chat completions, or plain ones.")] = True
    prompt_price: Annotated[float, typer.Option(help="Of a million prompt tokens there.")] = 0.0
    completion_price: Annotated[float, typer.Option(help="Of a million completion tokens.")] = 0.0

    def measure(self, lab: Lab) -> None:
        setting = lab.setting(self.setting)
        note = lab.entropy_note(setting, max(self.lengths), self.texts)
        material = Material.of(lab.human_texts(self.human))
        service, usage = self._service(), Usage()
        tables: list[Table] = []
        data: list[EditRow] = []
        for name in self.edits or ("unedited", *EDITS, *(PROMPTS if service else ())):
            if name in PROMPTS and service:
                client = EndpointClient(service, lab.run.folder / "endpoint", usage)
                editor: EditTexts = EndpointEdit(name, self.share, lab.run.seed, client)
            else:
                editor = offline_edit(name, self.share, material, lab.run.seed)
            rows = measure_edit(lab, self, self.block_sizes, name, editor)
            by_length = groups(rows, lambda row: row.length).values()
            tables += [edit_table(of, self.share, setting) for of in by_length]
            data += rows
        if service:
            lab.console.print(
                f"endpoint: {usage.requests} requests, {usage.cached} answers from the cache,"
                f" {usage.prompt_tokens} + {usage.completion_tokens} tokens, cost {usage.cost(service):.4f}"
            )
        printed, *others = tables
        printed = replace(printed, notes=edit_notes(data[0], note))
        lab.finish(self.name, [printed, *(replace(table, aside=True) for table in others)], data)

    def _service(self) -> Endpoint | None:
        if self.endpoint is None:
            return None
        key = self.endpoint_key.read_text().strip() if self.endpoint_key else ""
        prices = self.prompt_price, self.completion_price
        return Endpoint(self.endpoint.rstrip("/"), self.endpoint_model, key, self.endpoint_chat, *prices)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beta(EditOptions):
    """The skip penalty of the aligned detector (the paper's Figure 5)."""

    name: ClassVar[str] = "beta"
    title: ClassVar[str] = "Skip penalty"

    edits: EditNames = ("rewrite", "substitute", "insert")
    schemes: Schemes = PAPER_SCHEMES
    texts: Texts = 200

    def measure(self, lab: Lab) -> None:
        material = Material.of(lab.human_texts(self.human))
        rows: list[EditRow] = []
        for name in self.edits:
            editor = offline_edit(name, self.share, material, lab.run.seed)
            rows += measure_edit(lab, self, (2,), name, editor, BETAS)
        setting = lab.setting(self.setting)
        by_length = groups(rows, lambda row: row.length).values()
        tables = [beta_table(of, self.share, setting) for of in by_length]
        lab.finish(self.name, tables, rows, [beta_figure(rows)])


def edit_table(rows: Sequence[EditRow], share: float, setting: SamplingSetting) -> Table:
    """All rows of one edit and length, beside the paper's rephrasing."""
    first = rows[0]
    return table_by(
        f"Edit of {100 * share:.0f} %: {first.edit}, {first.length} tokens, {setting}",
        rows,
        {
            "": lambda row: row_name(row.scheme, row.block_size),
            "intact": lambda row: row.intact.percent(),
            "TPR at FPR 1e-2": lambda row: row.tpr[0].percent(),
            "TPR at FPR 1e-3": lambda row: row.tpr[1].percent(),
            "AUROC": lambda row: row.auroc,
            "direct: TPR at FPR 1e-3": lambda row: row.direct.percent(),
            "aligned minus direct": lambda row: row.gain.percent(),
            "paper, rephrasing: TPR, TPR, AUROC": _paper_text,
        },
    )


def edit_notes(row: EditRow, note: str) -> tuple[str, ...]:
    """What holds of the tables of all edits and lengths; they stand below the first."""
    return (
        "Of all tables of this experiment. Intact: blocks, at any boundary, that the edit left whole together"
        " with their contexts.",
        f"{row.texts} texts per row; thresholds from {row.null_texts} scores of unwatermarked texts"
        f" with the same edit; aligned detector, beta = {row.beta:g}; 95 % intervals.",
        "The threshold for FPR 1e-3 rests on the largest of these scores, which the intervals leave out.",
        "Rewrite: runs of words replaced by runs of texts by people. Other edits are of single words.",
        "Direct: exact p-values of the same edited texts; the difference is of the TPR at FPR 1e-3.",
        note,
    )


def _paper_text(row: EditRow) -> str | None:
    figures = PAPER.get((row.scheme, row.block_size))
    return f"{100 * figures[0]:.1f} %, {100 * figures[1]:.1f} %, {figures[2]:.3f}" if figures else None


def beta_table(rows: Sequence[EditRow], share: float, setting: SamplingSetting) -> Table:
    """TPR at FPR 1e-2 by edit, scheme and skip penalty; rows of one length."""
    first = rows[0]
    kinds = groups(rows, lambda row: (row.edit, scheme_title(row.scheme)))
    return Table(
        f"TPR at FPR 1e-2 by skip penalty, r = {first.block_size}, {100 * share:.0f} % edited,"
        f" {first.length} tokens, {setting}",
        ("edit", "scheme", *(f"beta {beta:g}" for beta in BETAS)),
        tuple((*kind, *(row.tpr[0].percent() for row in of)) for kind, of in kinds.items()),
        (
            f"{first.texts} texts per cell; thresholds from {first.null_texts} scores of unwatermarked texts"
            " with the same edit and skip penalty; 95 % intervals.",
        ),
    )


def beta_figure(rows: Sequence[EditRow]) -> Figure:
    """One panel per edit and length."""
    panels = []
    for (edit, length), kept in groups(rows, lambda row: (row.edit, row.length)).items():
        series = tuple(
            line(scheme_title(scheme), of, lambda row: row.beta, lambda row: row.tpr[0])
            for scheme, of in groups(kept, lambda row: row.scheme).items()
        )
        title = f"{edit}, {length} tokens"
        panels.append(Panel(title, "skip penalty beta", "TPR at FPR 1e-2", series, log_x=True))
    return Figure("beta", "Skip penalty of the aligned detector", tuple(panels))
