"""The `ttmark` command."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ttmark.services.cli import (
    evaluate,
    generate,
    keys,
    models,
    serve,
    tokens,
    up,
)
from ttmark.services.startup import StartupError, in_one_line, needs, one_clear_line
from ttmark.shared.features import modules_of

_PREFIX = "TTMARK_"


class Commands(TyperGroup):
    """Commands that end with exit code 1 where something failed, and with 2 for bad usage."""

    def invoke(self, ctx: Any) -> Any:
        """Runs a command where every variable of ours in the environment is one that somebody reads."""
        ours = any(name.upper().startswith(_PREFIX) for name in os.environ)
        if ours and not set(ctx.args).intersection(ctx.help_option_names):
            # The settings take a second to import, which most calls on a person's machine need not wait for.
            from ttmark.services.settings.unknown_variables import check_names

            check_names(os.environ)
        return super().invoke(ctx)

    def main(self, args: Sequence[str] | None = None, **options: Any) -> Any:  # type: ignore[override]
        typed = sys.argv[1:] if args is None else list(args)
        try:
            "".join(typed).encode()
            with one_clear_line():
                code = self._run(typed, **options)
        except UnicodeEncodeError:  # bytes of an argument, or of a file's name, that are no text
            typer.echo("ttmark: a name or a text that was given is not UTF-8", err=True)
            code = 2
        except typer.Exit as error:
            code = error.exit_code
        sys.exit(code)

    def _run(self, typed: list[str], **options: Any) -> int:
        try:
            code = super().main(typed, **options | {"standalone_mode": False})
        except typer.TyperException as error:
            if type(error).__name__ != "NoArgsIsHelpError":  # that one has printed the help
                typer.echo(f"ttmark: {_usage(error)}", err=True)
            return error.exit_code
        except typer.Abort:
            raise StartupError("stopped") from None
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise StartupError(f"{where}{error.strerror or error}") from error
        return code if isinstance(code, int) else 0


def _usage(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    help_ = f" (see {context.command_path} --help)" if context else ""
    return in_one_line(" ".join(error.format_message().split())) + help_


app = typer.Typer(name="ttmark", cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)


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
app.add_typer(keys.app, name="keys")
app.add_typer(models.app, name="models")
app.add_typer(tokens.app, name="tokens")
app.command("eval", context_settings=evaluate.HANDED_ON)(evaluate.evaluate)
app.command("bench", context_settings=evaluate.HANDED_ON)(evaluate.benchmark)
for _feature in modules_of("commands"):
    _feature.add({"": app, "serve": serve.app, "keys": keys.app})
