"""`ttmark bench`: measurements beside peers."""

import typer

from ttmark.evaluation.bench.generation import Generate
from ttmark.evaluation.bench.in_vllm import InVllm
from ttmark.evaluation.cli.app_and_errors import new_app
from ttmark.shared.commands_of_dataclasses import command_of


def bench_app() -> typer.Typer:
    """The command line."""
    app = new_app("Benchmarks side by side with their peers.")
    for kind in (Generate, InVllm):
        app.command(kind.name)(command_of(kind.run, kind))
    return app
