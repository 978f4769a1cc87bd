"""The `ttmark` command."""

from importlib.metadata import version
from typing import Annotated

import typer

from ttmark.services.cli import (
    ask,
    audit,
    case,
    conformance,
    detect,
    evaluate,
    generate,
    jobs,
    keys,
    models,
    serve,
    tokens,
    up,
    verify,
)
from ttmark.services.cli.commands import Commands
from ttmark.services.extras import needs

app = typer.Typer(
    name="ttmark",
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ttmark {version('ttmark')}")
        raise typer.Exit


@app.callback()
def main(
    _: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """Watermark text while it is generated, and find the watermark again."""


app.command()(needs("gen", "detect")(up.up))
app.add_typer(serve.app, name="serve")
app.command()(generate.generate)
app.command()(detect.detect)
app.command()(ask.ask)
app.command()(verify.verify)
app.add_typer(case.app, name="case")
app.add_typer(conformance.app, name="conformance")
app.add_typer(audit.app, name="audit")
app.add_typer(jobs.app, name="jobs")
app.add_typer(keys.app, name="keys")
app.add_typer(models.app, name="models")
app.add_typer(tokens.app, name="tokens")
app.command("eval", context_settings=evaluate.HANDED_ON)(evaluate.evaluate)
app.command("bench", context_settings=evaluate.HANDED_ON)(evaluate.benchmark)
