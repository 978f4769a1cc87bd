"""Commands that ask a service which a test plays."""

from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from ttmark.services.cli.main import app
from ttmark.shared.client import AsyncClient, Client

Run = Callable[..., Result]


@pytest.fixture
def run_against(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Run]:
    """The command line in a folder of its own, where a module's clients are answered by a function."""

    def against(module: Any, answer: Callable[[httpx.Request], httpx.Response], *given: str) -> Run:
        for kind in (Client, AsyncClient):
            made = partialmethod(kind.__init__, transport=httpx.MockTransport(answer))
            played = type("PlayedClient", (kind,), {"__init__": made})
            monkeypatch.setattr(module, kind.__name__, played, raising=False)
        monkeypatch.chdir(tmp_path)
        return lambda *arguments, **options: CliRunner().invoke(app, [*given, *arguments], **options)

    return against
