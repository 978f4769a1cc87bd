"""Detection after edits by alignment (paper, Table 3 and Figure 5)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.alignment_scores import alignment_z, threshold
from evaluation.cells import Cell
from evaluation.completions import Completion
from evaluation.edits.offline import EDITS, Material
from evaluation.intervals import Interval, Sample, auroc, clopper_pearson, mean
from evaluation.paper import EDITS as PAPER
from evaluation.paper import row_name
from evaluation.quality.measures import ngrams
from evaluation.report.table import Table
from evaluation.run import Run
from evaluation.seeds import prf_key, sampling_seed
from evaluation.settings import SamplingSetting
from shared.tokenization import TextTokenizer

FPRS = (1e-2, 1e-3)

EditTexts = Callable[[str, list[str]], list[str]]
"""Edits all texts of a cell: the cell's name and the texts in, as many texts out."""


@dataclass(frozen=True, slots=True)
class EditPlan:
    """What to measure.

    Attributes:
        lengths: in tokens; texts have the greatest and are cut for the others before they are edited.
        share: of the passage that is edited.
        null_keys: keys under which each edited text without a watermark is scored for the thresholds.
    """

    schemes: tuple[str, ...]
    block_sizes: tuple[int, ...]
    setting: SamplingSetting
    lengths: tuple[int, ...]
    texts: int
    betas: tuple[float, ...] = (5.0,)
    share: float = 0.3
    null_keys: int = 10

    def cell(self, scheme: str, block_size: int) -> Cell:
        """The texts of a row."""
        return Cell(scheme, block_size, self.setting, max(self.lengths))


@dataclass(frozen=True, slots=True)
class EditRow:
    """One scheme and block size after one edit at one length and skip penalty.

    Attributes:
        intact: share of the text's blocks, at any boundary, that the edit left whole with their contexts.
    """

    edit: str
    length: int
    scheme: str
    block_size: int
    beta: float
    texts: int
    null_texts: int
    tpr: tuple[Interval, ...]
    auroc: Interval
    intact: Interval


def offline_edit(name: str, share: float, material: Material, seed: int) -> EditTexts:
    """One of the edits that need no model, or none for `unedited`; ValueError for another name."""
    if name == "unedited":
        return lambda _, texts: texts
    if name not in EDITS:
        raise ValueError(f"unknown edit {name!r}; known: unedited, {', '.join(EDITS)}")

    def edit_all(cell: str, texts: list[str]) -> list[str]:
        generator = np.random.default_rng(sampling_seed(seed, "edit", name, cell))
        return [EDITS[name](text, share, material, generator) for text in texts]

    return edit_all


def measure_edit(
    run: Run, plan: EditPlan, name: str, edit: EditTexts, tokenizer: TextTokenizer
) -> list[EditRow]:
    """One row per length, scheme, block size and skip penalty."""
    return [row for length in plan.lengths for row in _measure(run, plan, length, name, edit, tokenizer)]


def _measure(
    run: Run, plan: EditPlan, length: int, name: str, edit: EditTexts, tokenizer: TextTokenizer
) -> list[EditRow]:
    plain = plan.cell(plan.schemes[0], 1).unmarked()
    unmarked = _edited(plain, length, run.texts(plain, plan.texts), edit, tokenizer)
    null_keys = [
        [prf_key(run.seed, "edits", index, number) for number in range(plan.null_keys)]
        for index in range(plan.texts)
    ]
    rows = []
    for scheme in plan.schemes:
        for block_size in plan.block_sizes:
            cell = plan.cell(scheme, block_size)
            texts = run.texts(cell, plan.texts)
            marked = _edited(cell, length, texts, edit, tokenizer)
            span = cell.watermark().context_width + block_size
            pairs = zip(texts, marked, strict=True)
            intact = mean(np.array([intact_share(text.tokens(length), after, span) for text, after in pairs]))
            found = _scores(cell, plan, marked, [[cell.key(run.seed, index)] for index in range(plan.texts)])
            null = _scores(cell, plan, unmarked, null_keys)
            rows += [
                _row(name, length, cell, beta, found[position], null[position], intact)
                for position, beta in enumerate(plan.betas)
            ]
    return rows


def _edited(
    cell: Cell, length: int, texts: Sequence[Completion], edit: EditTexts, tokenizer: TextTokenizer
) -> list[NDArray[np.int64]]:
    edited = edit(cell.name, [tokenizer.decode(text.token_ids[:length]) for text in texts])
    return [np.array(tokenizer.encode(text), dtype=np.int64) for text in edited]


def _scores(
    cell: Cell, plan: EditPlan, texts: Sequence[NDArray[np.int64]], keys: Sequence[Sequence[bytes]]
) -> NDArray[np.float64]:
    """z_emp, [betas, texts x keys]."""
    watermark = cell.watermark()
    found = [
        alignment_z(watermark, tokens, text_keys, plan.betas)
        for tokens, text_keys in zip(texts, keys, strict=True)
    ]
    return np.concatenate(found, axis=1)


def intact_share(before: NDArray[np.int64], after: NDArray[np.int64], span: int) -> float:
    """Share of the runs of `span` tokens in `before` that `after` holds too."""
    left = set(ngrams(after.tolist(), span))
    kept = [gram in left for gram in ngrams(before.tolist(), span)]
    return sum(kept) / len(kept) if kept else 1.0


def _row(
    edit: str, length: int, cell: Cell, beta: float, found: Sample, null: Sample, intact: Interval
) -> EditRow:
    rates = [clopper_pearson(int((found > threshold(null, fpr)).sum()), len(found)) for fpr in FPRS]
    return EditRow(
        edit=edit,
        length=length,
        scheme=str(cell.scheme),
        block_size=cell.block_size,
        beta=beta,
        texts=len(found),
        null_texts=len(null),
        tpr=tuple(rates),
        auroc=auroc(found, null),
        intact=intact,
    )


def edit_table(rows: Sequence[EditRow], plan: EditPlan, notes: tuple[str, ...]) -> Table:
    """All rows of one edit and length, beside the paper's rephrasing."""
    first = rows[0]
    return Table(
        f"Edit of {100 * plan.share:.0f} %: {first.edit}, {first.length} tokens, {plan.setting}",
        ("", "intact", "TPR at FPR 1 %", "TPR at FPR 0.1 %", "AUROC", "paper, rephrasing: TPR, TPR, AUROC"),
        tuple(
            (
                row_name(row.scheme, row.block_size),
                row.intact.percent(),
                *(rate.percent() for rate in row.tpr),
                str(row.auroc),
                _paper_text(row),
            )
            for row in rows
        ),
        (
            "Intact: blocks, at any boundary, that the edit left whole together with their contexts.",
            f"{first.texts} texts per row; thresholds from {first.null_texts} scores of unwatermarked texts"
            f" with the same edit; aligned detector, beta = {first.beta:g}; 95 % intervals.",
            *notes,
        ),
    )


def _paper_text(row: EditRow) -> str:
    figures = PAPER.get((row.scheme, row.block_size))
    if figures is None:
        return ""
    return f"{100 * figures[0]:.1f} %, {100 * figures[1]:.1f} %, {figures[2]:.3f}"
