"""`ttmark eval`: the paper's experiments on any Hugging Face causal language model."""

import typer

from evaluation.cli import direct, everything, pairs, report, robustness, side_effects
from evaluation.cli.with_lab import with_lab

app = typer.Typer(
    help="The paper's experiments on any causal language model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    direct.direct,
    direct.topp,
    direct.strict,
    side_effects.runtime,
    robustness.edits,
    robustness.beta,
    robustness.localized,
    side_effects.quality,
    direct.blocks,
    direct.gains,
    side_effects.repeated,
    side_effects.widths,
    side_effects.cost,
    direct.calibrate,
):
    app.command()(with_lab(command))
app.command("all")(with_lab(everything.everything))
app.command()(pairs.pairs)
app.command()(report.report)
