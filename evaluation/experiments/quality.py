"""Quality: watermarked texts beside texts without a watermark (paper, Table 6)."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.cells import Cell
from evaluation.intervals import Interval, Sample, clopper_pearson, difference_of_means, mean
from evaluation.model_figures import ModelFigures
from evaluation.paper import row_name
from evaluation.quality.measures import count_matrix, distinct_n, has_loop, permutation_p, until_end
from evaluation.report.table import Table
from evaluation.run import Run
from evaluation.settings import SamplingSetting

COMMON_TOKENS = 300


@dataclass(frozen=True, slots=True)
class QualityPlan:
    """What to measure; texts of `tokens` are cut at their first end of text, as a user's are."""

    schemes: tuple[str, ...]
    block_sizes: tuple[int, ...]
    setting: SamplingSetting
    tokens: int
    texts: int

    def cell(self, scheme: str | None, block_size: int) -> Cell:
        """The texts of a row."""
        return Cell(scheme, block_size, self.setting, self.tokens)


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


def measure_quality(run: Run, figures: ModelFigures, plan: QualityPlan) -> list[QualityRow]:
    """The row of plain texts, then one per scheme and block size."""
    plain = _figures(run, figures, plan, plan.cell(None, 1))
    counts = Counter(token for text in plain.texts for token in text)
    common = [token for token, _ in counts.most_common(COMMON_TOKENS)]
    rows = [_row(None, 1, plan, plain, None, common)]
    for scheme in plan.schemes:
        for block_size in plan.block_sizes:
            found = _figures(run, figures, plan, plan.cell(scheme, block_size))
            rows.append(_row(scheme, block_size, plan, found, plain, common))
    return rows


def _figures(run: Run, figures: ModelFigures, plan: QualityPlan, cell: Cell) -> _Figures:
    made = run.texts(cell, plan.texts)
    texts = [until_end(text.token_ids, figures.end_tokens) for text in made]
    losses = [
        -figures.model.log_likelihood(figures.prompt(text.index), tokens).mean()
        for text, tokens in zip(made, texts, strict=True)
    ]
    distinct = [distinct_n(tokens, 2) for tokens in texts]
    return _Figures(np.array(losses), np.array(distinct), texts)


def _row(
    scheme: str | None,
    block_size: int,
    plan: QualityPlan,
    found: _Figures,
    plain: _Figures | None,
    common: Sequence[int],
) -> QualityRow:
    texts = found.texts
    distribution_p = None
    if plain:
        reference = count_matrix(plain.texts, common)
        distribution_p = permutation_p(count_matrix(texts, common), reference)
    return QualityRow(
        scheme=scheme,
        block_size=block_size,
        texts=len(texts),
        loss=mean(found.loss),
        loss_difference=difference_of_means(found.loss, plain.loss) if plain else None,
        distinct_2=mean(found.distinct_2),
        distinct_2_difference=difference_of_means(found.distinct_2, plain.distinct_2) if plain else None,
        length=mean(np.array([len(tokens) for tokens in texts], dtype=np.float64)),
        capped=clopper_pearson(sum(len(tokens) == plan.tokens for tokens in texts), len(texts)),
        loops=clopper_pearson(sum(has_loop(tokens) for tokens in texts), len(texts)),
        distribution_p=distribution_p,
    )


def quality_table(rows: Sequence[QualityRow], plan: QualityPlan, notes: tuple[str, ...]) -> Table:
    """All rows of one setting."""
    tested = len(rows) - 1
    return Table(
        f"Quality, up to {plan.tokens} tokens, {plan.setting}",
        (
            "",
            "perplexity",
            "loss minus unwatermarked (nats)",
            "distinct-2",
            "distinct-2 minus unwatermarked",
            "tokens",
            "reach the cap",
            "loops",
            "p of equal token distribution",
        ),
        tuple(
            (
                row_name(row.scheme, row.block_size) if row.scheme else "no watermark",
                f"{np.exp(row.loss.estimate):.2f} [{np.exp(row.loss.low):.2f}, {np.exp(row.loss.high):.2f}]",
                str(row.loss_difference) if row.loss_difference else "",
                str(row.distinct_2),
                str(row.distinct_2_difference) if row.distinct_2_difference else "",
                str(row.length),
                row.capped.percent(),
                row.loops.percent(),
                f"{row.distribution_p:.3f}" if row.distribution_p is not None else "",
            )
            for row in rows
        ),
        (
            f"{rows[0].texts} texts per row; perplexity under the same model without filters; the last column"
            f" is a permutation test over texts (total variation distance of the {COMMON_TOKENS} commonest"
            f" tokens). Of {tested} tests one in twenty is below 0.05 by chance.",
            *notes,
        ),
    )
