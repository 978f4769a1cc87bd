"""`ttmark eval report`: one document of a run's results."""

from pathlib import Path
from typing import Annotated

import typer

from evaluation.cli.options import DEFAULT_OUT
from evaluation.report.document import write_document


def report(
    target: Annotated[Path, typer.Argument(help="Folder for README.md, plots and JSON.")],
    run: Annotated[Path, typer.Option("--out", help="Folder of the run.")] = DEFAULT_OUT,
) -> None:
    """Write one document of a run's results, with `findings.md` of the target folder on top."""
    try:
        names = write_document(run, target)
    except (ValueError, OSError) as error:
        typer.echo(f"ttmark: {error}", err=True)
        raise typer.Exit(1) from error
    typer.echo(f"{target / 'README.md'}: {', '.join(names)}")
