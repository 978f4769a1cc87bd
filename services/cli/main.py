"""The `ttmark` command."""

import typer

from services.cli import detect, evaluate, generate, keys, serve, tokens, up

app = typer.Typer(
    name="ttmark",
    help="Watermark text while it is generated, and find the watermark again.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command()(up.up)
app.add_typer(serve.app, name="serve")
app.command()(generate.generate)
app.command()(detect.detect)
app.add_typer(keys.app, name="keys")
app.add_typer(tokens.app, name="tokens")
app.command("eval", context_settings=evaluate.HANDED_ON)(evaluate.evaluate)
app.command("bench", context_settings=evaluate.HANDED_ON)(evaluate.benchmark)
