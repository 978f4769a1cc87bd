"""docs/reference/command-line.md, from the commands themselves."""

import re

import typer
from typer.cli import get_docs_for_click

from ttmark.services.cli.main import app

HEADER = """\
# Command line

Every command with its arguments and options (written by `python -m tests.harness.reference`).
`ttmark COMMAND --help` shows the same. How commands behave, with their exit codes:
[generation](../generation.md#from-the-command-line), [detection](../detection.md#from-the-command-line),
[keys](../operations/keys.md#key-rotation), [evaluation](../evaluation.md).

"""
# Lists of commands, cut short as on a terminal, and the options that every program of this kind has.
NEEDLESS = re.compile(
    r"\*\*Commands\*\*:\n\n(\* .*\n)+\n?|\* `--(install-completion|show-completion|help)`.*\n"
)
BARE = re.compile(r"\*\*Options\*\*:\n\n(?!\*)")


def command_line_page() -> str:
    """The whole page: a heading for each command."""
    command = typer.main.get_command(app)
    context = typer.Context(command, info_name="ttmark")
    text = get_docs_for_click(obj=command, ctx=context, indent=1, name="ttmark")
    text = BARE.sub("", NEEDLESS.sub("", text.replace("$ ttmark", "ttmark")))
    return HEADER + text.rstrip() + "\n"
