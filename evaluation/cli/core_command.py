"""`ttmark eval core`: what the watermark core promises, measured without a language model."""

import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.cli.commands_of_dataclasses import one_clear_line
from ttmark.evaluation.core.distortion import distortion_table, theorem_table
from ttmark.evaluation.core.false_positives_of_scores import direct_table, likelihood_table
from ttmark.evaluation.core.false_positives_of_texts import counts_table, text_counts, write_counts
from ttmark.evaluation.options import BlockSizes, Schemes
from ttmark.evaluation.report.result import Table
from ttmark.shared.watermark import scheme_names


@dataclass(frozen=True, slots=True)
class Core:
    """What the watermark core promises, measured without a language model; prints Markdown."""

    name: ClassVar[str] = "core"

    experiment: Annotated[
        str, typer.Argument(help="distortion, theorem, fpr-direct, fpr-texts, fpr-likelihood.")
    ]
    schemes: Schemes = tuple(scheme_names())
    block_sizes: BlockSizes = (2, 1, 3)
    documents: Annotated[int, typer.Option(min=5, help="Of `fpr-texts`.")] = 1_000
    keys: Annotated[int, typer.Option(min=2, help="Of `distortion`; joints of `theorem`.")] = 10_000
    trials: Annotated[int, typer.Option(min=1, help="Of `fpr-direct`, `fpr-likelihood`.")] = 1_000_000
    rows: Annotated[Path | None, typer.Option(help="Also write every row of `fpr-texts` as JSON.")] = None
    seed: int = 1

    def run(self) -> None:
        if self.experiment not in EXPERIMENTS:
            raise typer.BadParameter(f"{self.experiment!r} is none of {', '.join(EXPERIMENTS)}")
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
        with one_clear_line(code=2):
            typer.echo(EXPERIMENTS[self.experiment](self).markdown())


def _text_rates(o: Core) -> Table:
    counts = list(text_counts(o.schemes, o.documents, o.seed))
    if o.rows:
        write_counts(counts, o.rows)
    return counts_table(counts)


EXPERIMENTS: Mapping[str, Callable[[Core], Table]] = {
    "distortion": lambda o: distortion_table(o.schemes, o.block_sizes, o.keys, o.seed),
    "theorem": lambda o: theorem_table(o.keys, o.seed),
    "fpr-direct": lambda o: direct_table(o.schemes, o.trials, o.seed),
    "fpr-texts": _text_rates,
    "fpr-likelihood": lambda o: likelihood_table(o.schemes, o.block_sizes, o.trials, o.seed),
}
