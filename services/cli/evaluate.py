"""`ttmark eval` and `ttmark bench`, handed on whole to code that is imported when they are called."""

import typer

HANDED_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def evaluate(context: typer.Context) -> None:
    """The paper's experiments on any causal language model."""
    # Imported here: the rest of the command line must start without torch.
    from evaluation.cli.app import app

    app(args=context.args, prog_name="ttmark eval")


def benchmark(context: typer.Context) -> None:
    """Benchmarks side by side with their peers."""
    from evaluation.cli.bench import bench_app
    from services.bulk_systems import bulk_systems

    bench_app(bulk_systems)(args=context.args, prog_name="ttmark bench")
