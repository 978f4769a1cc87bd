"""`ttmark eval` and `ttmark bench`, handed on whole to code that is imported when they are called."""

from collections.abc import Sequence

import typer

from ttmark.services.cli.models import fetch_named
from ttmark.services.startup import require

HANDED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def evaluate(context: typer.Context) -> None:
    """What the mark does to texts of any causal language model, and what is found of them."""
    _require_extras(context.args)
    # Imported here: the rest of the command line must start without torch.
    from ttmark.evaluation.cli.app import eval_app
    from ttmark.services.evaluated_detection import Service

    _hand_on(eval_app(Service), context)


def benchmark(context: typer.Context) -> None:
    """Benchmarks side by side with their peers."""
    _require_extras(context.args)
    from ttmark.evaluation.bench.in_vllm import bench_app

    _hand_on(bench_app(), context)


def _hand_on(app: typer.Typer, context: typer.Context) -> None:
    """Runs the command line behind the command, whose errors are told as those of all commands."""
    fetch_named(context.args)
    code = app(args=context.args, prog_name=context.command_path, standalone_mode=False)
    if isinstance(code, int):
        raise typer.Exit(code)


def _require_extras(arguments: Sequence[str]) -> None:
    """Before an experiment runs, not when it computes intervals; help needs what the services need."""
    asks_for_help = not arguments or "--help" in arguments
    require(*(("gen", "detect") if asks_for_help else ("eval",)))
