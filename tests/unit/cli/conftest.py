"""Commands that ask a service which a test plays."""

from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner, Result

from ttmark.services.cli.main import app
from ttmark.shared.client import Client

Run = Callable[..., Result]


@pytest.fixture
def run_against(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Run]:
    """The command line in a folder of its own, where a module's clients are answered by a function."""

    def against(module: Any, answer: Callable[[httpx.Request], httpx.Response], *given: str) -> Run:
        made = partialmethod(Client.__init__, transport=httpx.MockTransport(answer))
        monkeypatch.setattr(module, "Client", type("PlayedClient", (Client,), {"__init__": made}))
        monkeypatch.chdir(tmp_path)
        return lambda *arguments, **options: CliRunner().invoke(app, [*given, *arguments], **options)

    return against
