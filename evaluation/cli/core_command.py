"""`ttmark eval core`: what the watermark core promises, measured without a language model."""

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.cli.commands_of_dataclasses import one_clear_line
from ttmark.evaluation.core import false_positives_of_scores as false_positives
from ttmark.evaluation.core import false_positives_of_texts as texts
from ttmark.evaluation.core import foreign, likelihood
from ttmark.evaluation.core.distortion import distortion_table, theorem_table
from ttmark.evaluation.core.rate_tables import Count, pooled_table, write_rows
from ttmark.evaluation.options import BlockSizes, Schemes
from ttmark.evaluation.report.result import Table
from ttmark.shared.watermark import scheme_names


@dataclass(frozen=True, slots=True)
class Core:
    """What the watermark core promises, measured without a language model; prints Markdown."""

    name: ClassVar[str] = "core"

    experiment: Annotated[
        str,
        typer.Argument(
            help="distortion, theorem, fpr-direct, fpr-search, fpr-texts, fpr-foreign, fpr-likelihood,"
            " coverage."
        ),
    ]
    schemes: Schemes = tuple(scheme_names())
    block_sizes: BlockSizes = (2, 1, 3)
    documents: Annotated[int, typer.Option(min=5, help="Of `fpr-texts`, `fpr-foreign`, `coverage`.")] = 1_000
    wrong_keys: Annotated[int, typer.Option(min=1, help="For each text of `fpr-foreign`.")] = 500
    keys: Annotated[int, typer.Option(min=2, help="Of `distortion`; joints of `theorem`.")] = 10_000
    trials: Annotated[int, typer.Option(min=1, help="Of `fpr-...`.")] = 1_000_000
    window_trials: Annotated[int, typer.Option(min=1, help="Of `fpr-search`, WaterSeeker.")] = 250_000
    rows: Annotated[Path | None, typer.Option(help="Also write every row of a pooled table as JSON.")] = None
    seed: int = 1

    def run(self) -> None:
        if self.experiment not in EXPERIMENTS:
            raise typer.BadParameter(f"{self.experiment!r} is none of {', '.join(EXPERIMENTS)}")
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
        with one_clear_line(code=2):
            typer.echo(EXPERIMENTS[self.experiment](self).markdown())


def _search_rates(o: Core) -> Table:
    counts = false_positives.search_counts(o.schemes, o.block_sizes, o.trials, o.window_trials, o.seed)
    return _pooled(list(counts), false_positives.SEARCH_LEVELS, o.rows, by_text=False)


def _text_rates(o: Core) -> Table:
    counts = list(texts.text_counts(o.schemes, o.documents, o.seed))
    return _pooled(counts, texts.LEVELS, o.rows, by_text=True)


def _foreign_rates(o: Core) -> Table:
    counts = list(foreign.foreign_counts(o.documents, o.wrong_keys, o.seed))
    return _pooled(counts, foreign.LEVELS, o.rows, by_text=False)


def _pooled(counts: list[Count], levels: Sequence[float], rows: Path | None, *, by_text: bool) -> Table:
    if rows:
        write_rows(counts, levels, rows)
    return pooled_table(counts, levels, by_text=by_text)


EXPERIMENTS: Mapping[str, Callable[[Core], Table]] = {
    "distortion": lambda o: distortion_table(o.schemes, o.block_sizes, o.keys, o.seed),
    "theorem": lambda o: theorem_table(o.keys, o.seed),
    "fpr-direct": lambda o: false_positives.direct_table(o.schemes, o.trials, o.seed),
    "fpr-search": _search_rates,
    "fpr-texts": _text_rates,
    "fpr-foreign": _foreign_rates,
    "fpr-likelihood": lambda o: likelihood.rates_table(o.schemes, o.block_sizes, o.trials, o.seed),
    "coverage": lambda o: likelihood.coverage_table(o.documents, o.seed),
}
