"""`ttmark` in the process of the test."""

import shlex
from typing import Any

from typer.testing import CliRunner, Result

from ttmark.services.cli.main import app


def invoke(*arguments: object, **options: Any) -> Result:
    """Runs a command; `options` as those of typer's `CliRunner.invoke`."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], **options)


def typed(line: str) -> Result:
    """Runs a line without its first word, `ttmark`."""
    return invoke(*shlex.split(line))
