"""`ttmark eval pairs`, `report`, `null-tables`: what needs no run of a model."""

import json
import logging
import sys
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, ClassVar

import typer
from rich.console import Console

from ttmark.evaluation.cli.commands_of_dataclasses import one_clear_line
from ttmark.evaluation.command_line import command_words
from ttmark.evaluation.null_tables.build import TABLES, write_table
from ttmark.evaluation.options import BlockSizes, Out, Schemes, run_folder
from ttmark.evaluation.reference_scores import bert_scorer, pairs_table, read_pairs, score_pairs
from ttmark.evaluation.report.pages import write_pages
from ttmark.evaluation.report.result import Result
from ttmark.shared.watermark import Watermark, scheme_names


@dataclass(frozen=True, slots=True)
class Pairs:
    """ROUGE, BLEU and BERTScore against references (the paper's Table 6), for tasks of your own."""

    name: ClassVar[str] = "pairs"

    file: Annotated[Path, typer.Argument(help="JSONL with `candidate`, `reference` and maybe `system`.")]
    bert_model: Annotated[str | None, typer.Option(help="Model for BERTScore (needs bert-score).")] = None
    out: Out = None

    def run(self) -> None:
        with one_clear_line():
            bert_score = bert_scorer(self.bert_model) if self.bert_model else None
            scores = score_pairs(read_pairs(self.file), bert_score)
        table = pairs_table(scores)
        Console().print(table.rich())
        data = tuple(asdict(score) for score in scores)
        result = Result(self.name, command_words(self.name, self), (table,), (), data)
        result.made_here().save(run_folder(self.out))


@dataclass(frozen=True, slots=True)
class Report:
    """Write a run's results as pages for readers; experiments that belong together share one."""

    name: ClassVar[str] = "report"

    target: Annotated[Path, typer.Argument(help="Folder for the pages, plots and JSON.")]
    out: Out = None

    def run(self) -> None:
        with one_clear_line():
            names = write_pages(run_folder(self.out), self.target)
        typer.echo(f"{self.target}: {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class NullTables:
    """Build null tables, of the schemes' defaults or other parameters, two or three minutes each."""

    name: ClassVar[str] = "null-tables"

    schemes: Schemes = tuple(scheme_names())
    block_sizes: BlockSizes = (2, 1, 3)
    parameters: Annotated[
        tuple[str, ...],
        typer.Option("--param", metavar="NAME=VALUE", help="Of the schemes; may be repeated."),
    ] = ()
    out: Annotated[Path, typer.Option(help="Folder; default: the tables that ship.", show_default=False)] = (
        TABLES
    )
    seed: int = 1

    def run(self) -> None:
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
        with one_clear_line():
            pairs = (text.partition("=") for text in self.parameters)
            given = {name: json.loads(value) for name, _, value in pairs}
            of_size = product(self.block_sizes, self.schemes)
            watermarks = [Watermark(scheme, size, parameters=given) for size, scheme in of_size]
        for watermark in watermarks:
            typer.echo(write_table(watermark, self.seed, self.out or TABLES))
