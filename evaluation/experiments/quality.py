"""`quality`: watermarked texts beside texts without a watermark (paper, Table 6)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ttmark.evaluation.experiment import Lab
from ttmark.evaluation.experiment_cells import Cell, SamplingSetting, Setting
from ttmark.evaluation.intervals import Interval, Sample, clopper_pearson, difference_of_means, mean
from ttmark.evaluation.language_model import log_likelihood
from ttmark.evaluation.options import SCHEMES, BlockSizes, Length, OneSetting, Schemes, Texts
from ttmark.evaluation.report.result import Table, row_name, table_by
from ttmark.evaluation.text_quality import count_matrix, distinct_n, has_loop, permutation_p, until_end

COMMON_TOKENS = 300


@dataclass(frozen=True, slots=True)
class Quality:
    """Perplexity, repetition and token distribution, watermarked against not (the paper's Table 6)."""

    name: ClassVar[str] = "quality"

    setting: OneSetting = Setting.CHAT
    schemes: Schemes = SCHEMES
    block_sizes: BlockSizes = (1, 2)
    length: Length = 400
    texts: Texts = 500

    def measure(self, lab: Lab) -> None:
        """Texts are cut at their first end of text, as a user's are."""
        setting = lab.setting(self.setting)
        rows = measure_quality(lab, self, setting)
        lab.finish(self.name, [quality_table(rows, self.length, setting)], rows)


@dataclass(frozen=True, slots=True)
class QualityRow:
    """One kind of text; differences are against texts without a watermark.

    Attributes:
        loss: mean negative log-likelihood per token under the same model without filters, in nats.
        capped: share of texts that reach the length cap.
        loops: share of texts in which 8 tokens occur three times.
        distribution_p: of the test that tokens are distributed as without a watermark; None for those.
    """

    scheme: str | None
    block_size: int
    texts: int
    loss: Interval
    loss_difference: Interval | None
    distinct_2: Interval
    distinct_2_difference: Interval | None
    length: Interval
    capped: Interval
    loops: Interval
    distribution_p: float | None


@dataclass(frozen=True, slots=True)
class _Figures:
    loss: Sample
    distinct_2: Sample
    texts: list[tuple[int, ...]]


def measure_quality(lab: Lab, plan: Quality, setting: SamplingSetting) -> list[QualityRow]:
    """The row of plain texts, then one per scheme and block size."""
    plain = _figures(lab, Cell(None, 1, setting, plan.length), plan.texts)
    counts = Counter(token for text in plain.texts for token in text)
    common = [token for token, _ in counts.most_common(COMMON_TOKENS)]
    rows = [_row(Cell(None, 1, setting, plan.length), plain, None, common)]
    for scheme in plan.schemes:
        for block_size in plan.block_sizes:
            cell = Cell(scheme, block_size, setting, plan.length)
            rows.append(_row(cell, _figures(lab, cell, plan.texts), plain, common))
    return rows


def _figures(lab: Lab, cell: Cell, count: int) -> _Figures:
    made = lab.run.texts(cell, count)
    texts = [until_end(text.token_ids, lab.source.end_tokens) for text in made]
    losses = [
        -log_likelihood(lab.source.language_model, lab.prompt(text.index), tokens).mean()
        for text, tokens in zip(made, texts, strict=True)
    ]
    distinct = [distinct_n(tokens, 2) for tokens in texts]
    return _Figures(np.array(losses), np.array(distinct), texts)


def _row(cell: Cell, found: _Figures, plain: _Figures | None, common: Sequence[int]) -> QualityRow:
    texts = found.texts
    distribution_p = None
    if plain:
        reference = count_matrix(plain.texts, common)
        distribution_p = permutation_p(count_matrix(texts, common), reference)
    return QualityRow(
        scheme=cell.scheme,
        block_size=cell.block_size,
        texts=len(texts),
        loss=mean(found.loss),
        loss_difference=difference_of_means(found.loss, plain.loss) if plain else None,
        distinct_2=mean(found.distinct_2),
        distinct_2_difference=difference_of_means(found.distinct_2, plain.distinct_2) if plain else None,
        length=mean(np.array([len(tokens) for tokens in texts], dtype=np.float64)),
        capped=clopper_pearson(sum(len(tokens) == cell.tokens for tokens in texts), len(texts)),
        loops=clopper_pearson(sum(has_loop(tokens) for tokens in texts), len(texts)),
        distribution_p=distribution_p,
    )


def quality_table(rows: Sequence[QualityRow], length: int, setting: SamplingSetting) -> Table:
    """All rows of one setting."""
    return table_by(
        f"Quality, up to {length} tokens, {setting}",
        rows,
        {
            "": lambda row: row_name(row.scheme, row.block_size),
            "perplexity": lambda row: Interval(*np.exp((row.loss.estimate, row.loss.low, row.loss.high))),
            "loss minus unwatermarked (nats)": lambda row: row.loss_difference,
            "distinct-2": lambda row: row.distinct_2,
            "distinct-2 minus unwatermarked": lambda row: row.distinct_2_difference,
            "tokens": lambda row: row.length,
            "reach the cap": lambda row: row.capped.percent(),
            "loops": lambda row: row.loops.percent(),
            "p of equal token distribution": lambda row: (
                None if row.distribution_p is None else f"{row.distribution_p:.3f}"
            ),
        },
        (
            f"{rows[0].texts} texts per row; perplexity under the same model without filters; the last column"
            f" is a permutation test over texts (total variation distance of the {COMMON_TOKENS} commonest"
            f" tokens). Each of the {len(rows) - 1} tests is below 0.05 by chance one time in twenty.",
        ),
    )
