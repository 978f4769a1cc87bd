"""`ttmark bench`: measurements beside peers, and two of them side by side."""

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from evaluation.bench.cli import app as engine
from evaluation.report.compare import compare_documents

app = typer.Typer(
    help="Benchmarks side by side with their peers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.registered_commands += engine.registered_commands

Document = Annotated[Path, typer.Argument(help="JSON that a benchmark or an experiment wrote.")]


@app.command()
def compare(before: Document, after: Document) -> None:
    """Every figure that two results share, and the ratio of the second to the first."""
    try:
        documents = [orjson.loads(path.read_bytes()) for path in (before, after)]
        table = compare_documents(before.name, documents[0], after.name, documents[1])
    except (OSError, ValueError) as error:
        typer.echo(f"ttmark: {error}", err=True)
        raise typer.Exit(1) from error
    Console().print(table.rich())
