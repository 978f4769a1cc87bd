"""Detection of edited texts, by alignment and direct: what `edits` and `beta` measure."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from ttmark.evaluation.direct_and_aligned import alignment_z, threshold
from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Cell, Setting, prf_key, sampling_seed
from ttmark.evaluation.intervals import Interval, Sample, auroc, clopper_pearson, mean
from ttmark.evaluation.options import SCHEMES, Human, Lengths, OneSetting, Schemes, Texts
from ttmark.evaluation.run_folder import Completion
from ttmark.evaluation.text_edits import EDITS, PROMPTS, Material
from ttmark.evaluation.text_quality import ngrams
from ttmark.shared.watermark import Watermark, detect_direct
from ttmark.shared.watermark.detectors.alignment import BETA

FPRS = (1e-2, 1e-3)
NULL_KEYS = 10
"""Keys under which each edited text without a watermark is scored for the thresholds."""

EditTexts = Callable[[str, list[str]], list[str]]
"""Edits all texts of a cell: the cell's name and the texts in, as many texts out."""


EditNames = Annotated[
    tuple[str, ...],
    typer.Option(
        "--edit",
        help=f"May be repeated: unedited, {', '.join(EDITS)}; with an endpoint {', '.join(PROMPTS)};"
        " default: all of them.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class EditOptions:
    """What `edits` and `beta` share."""

    edits: EditNames = ()
    share: Annotated[float, typer.Option(min=0.0, max=0.9, help="Share of the passage that is edited.")] = 0.3
    setting: OneSetting = Setting.ISO
    schemes: Schemes = SCHEMES
    lengths: Lengths = (200, 400)
    texts: Texts = 300
    human: Human = None

    def cell(self, lab: Lab, scheme: str, block_size: int) -> Cell:
        """The texts of a row: of the greatest length, cut for the others before they are edited."""
        return Cell(scheme, block_size, lab.setting(self.setting), max(self.lengths))


@dataclass(frozen=True, slots=True)
class EditRow:
    """One scheme and block size after one edit at one length and skip penalty.

    Attributes:
        tpr, auroc: of the aligned detector.
        direct: TPR of direct detection at the last of FPRS.
        gain: TPR of the aligned detector minus that of the direct one, paired by text.
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
    direct: Interval
    gain: Interval
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
    lab: Lab,
    options: EditOptions,
    block_sizes: Sequence[int],
    name: str,
    edit: EditTexts,
    betas: Sequence[float] = (BETA,),
) -> list[EditRow]:
    """One row per length, scheme, block size and skip penalty `beta`."""
    run, count = lab.run, options.texts
    plain = options.cell(lab, options.schemes[0], 1).unmarked()
    null_keys = [
        [prf_key(run.seed, "edits", index, number) for number in range(NULL_KEYS)] for index in range(count)
    ]
    rows = []
    for length in options.lengths:
        unmarked = _edited(lab, plain, length, run.texts(plain, count), edit)
        for scheme, block_size in product(options.schemes, block_sizes):
            cell = options.cell(lab, scheme, block_size)
            watermark, texts = cell.watermark(), run.texts(cell, count)
            marked = _edited(lab, cell, length, texts, edit)
            span = watermark.context_width + block_size
            pairs = zip(texts, marked, strict=True)
            intact = mean(np.array([intact_share(text.tokens(length), after, span) for text, after in pairs]))
            keys = [cell.key(run.seed, index) for index in range(count)]
            direct = [
                detect_direct(watermark, key, tokens).log10_p <= math.log10(FPRS[-1])
                for key, tokens in zip(keys, marked, strict=True)
            ]
            found = _scores(watermark, betas, marked, [[key] for key in keys])
            null = _scores(watermark, betas, unmarked, null_keys)
            rows += [
                _row(name, length, cell, beta, found[at], null[at], np.array(direct), intact)
                for at, beta in enumerate(betas)
            ]
    return rows


def _edited(
    lab: Lab, cell: Cell, length: int, texts: Sequence[Completion], edit: EditTexts
) -> list[NDArray[np.int64]]:
    tokenizer = lab.source.tokenizer
    edited = edit(cell.name, [tokenizer.decode(text.token_ids[:length]) for text in texts])
    return [np.array(tokenizer.encode(text), dtype=np.int64) for text in edited]


def _scores(
    watermark: Watermark,
    betas: Sequence[float],
    texts: Sequence[NDArray[np.int64]],
    keys: Sequence[Sequence[bytes]],
) -> NDArray[np.float64]:
    """z_emp, [betas, texts x keys]."""
    found = [
        alignment_z(watermark, tokens, text_keys, betas)
        for tokens, text_keys in zip(texts, keys, strict=True)
    ]
    return np.concatenate(found, axis=1)


def intact_share(before: NDArray[np.int64], after: NDArray[np.int64], span: int) -> float:
    """Share of the runs of `span` tokens in `before` that `after` holds too."""
    left = set(ngrams(after.tolist(), span))
    kept = [gram in left for gram in ngrams(before.tolist(), span)]
    return sum(kept) / len(kept) if kept else 1.0


def _row(
    edit: str,
    length: int,
    cell: Cell,
    beta: float,
    found: Sample,
    null: Sample,
    direct: NDArray[np.bool_],
    intact: Interval,
) -> EditRow:
    passed = [found > threshold(null, fpr) for fpr in FPRS]
    return EditRow(
        edit=edit,
        length=length,
        scheme=str(cell.scheme),
        block_size=cell.block_size,
        beta=beta,
        texts=len(found),
        null_texts=len(null),
        tpr=tuple(clopper_pearson(int(hits.sum()), len(hits)) for hits in passed),
        auroc=auroc(found, null),
        direct=clopper_pearson(int(direct.sum()), len(direct)),
        gain=mean(passed[-1].astype(np.float64) - direct),
        intact=intact,
    )
