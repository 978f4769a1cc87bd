"""`ttmark eval`: what a mark does to texts of a language model, and what is found of them."""

import json
import logging
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from ttmark.evaluation.cli.measured_run import new_app, one_clear_line
from ttmark.evaluation.cli.quality import Quality
from ttmark.evaluation.cli.results import Results
from ttmark.evaluation.null_tables.build import TABLES, write_table
from ttmark.evaluation.results.detectors import MakeService
from ttmark.shared.commands_of_dataclasses import command_of
from ttmark.shared.watermark.schemes.registry import scheme_names
from ttmark.shared.watermark.schemes.watermark import Watermark


@dataclass(frozen=True, slots=True)
class NullTables:
    """Build null tables, of the schemes' defaults or other parameters, two or three minutes each."""

    name: ClassVar[str] = "null-tables"

    schemes: Annotated[tuple[str, ...], typer.Option("--scheme", help="May be repeated.")] = tuple(
        scheme_names()
    )
    block_sizes: Annotated[
        tuple[int, ...], typer.Option("--block-size", help="Tokens per block; may be repeated.")
    ] = (2, 1, 3)
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


def eval_app(service: MakeService) -> typer.Typer:
    """The command line.

    Args:
        service: what asks the detection service, of a process that another one can make.
    """
    app = new_app("What the mark does to texts of any causal language model, and what is found of them.")
    app.command(Results.name)(command_of(lambda asked: asked.run(service), Results))
    for kind in (Quality, NullTables):
        app.command(kind.name)(command_of(kind.run, kind))
    return app
