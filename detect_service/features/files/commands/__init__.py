"""`ttmark detect`."""

from collections.abc import Mapping

import typer

from ttmark.detect_service.features.files.commands.detect import detect


def add(groups: Mapping[str, typer.Typer]) -> None:
    """Adds the commands to those of `ttmark`."""
    groups[""].command()(detect)
