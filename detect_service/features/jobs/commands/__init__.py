"""`ttmark jobs`."""

from collections.abc import Mapping

import typer

from ttmark.detect_service.features.jobs.commands import jobs


def add(groups: Mapping[str, typer.Typer]) -> None:
    """Adds the commands to those of `ttmark`."""
    groups[""].add_typer(jobs.app, name="jobs")
