"""`ttmark serve canary`."""

from collections.abc import Mapping

import typer

from ttmark.services.features.canary.settings import CanarySettings


def canary() -> None:
    """Run the live check of both services: generate, detect, record."""
    settings = CanarySettings()
    from ttmark.services.features.canary.canary import serve_canary

    serve_canary(settings)


def add(groups: Mapping[str, typer.Typer]) -> None:
    """Adds the commands to those of `ttmark`."""
    groups["serve"].command()(canary)
