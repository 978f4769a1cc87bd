"""`ttmark eval`: the paper's experiments on any Hugging Face causal language model."""

import typer

from evaluation.cli import direct

app = typer.Typer(help="The paper's experiments on any causal language model.", no_args_is_help=True)
app.command()(direct.direct)
app.command()(direct.blocks)
