"""TTMARK_CORS_ORIGINS reaches both services as they are composed."""

import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import structlog

from ttmark.services.detection_service import build_detection_service
from ttmark.services.generation_service import build_generation_service
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.startup import StartupError


@pytest.fixture
def settings(tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Those of both services; a preflight needs neither a started service nor Redis."""
    environment = {
        "TTMARK_STORE_URL": f"sqlite:///{tmp_path / 'keys.db'}",
        "TTMARK_KEK": hashlib.sha256(b"any").hexdigest(),
        "TTMARK_MODEL": str(tiny_model),
        "TTMARK_TOKENIZERS": str(tiny_model),
        "TTMARK_THREADS": "1",
        "TTMARK_CORS_ORIGINS": "https://app.example.org, http://localhost:5173",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("service", ["generation", "detection"])
async def test_pages_from_the_origins_of_the_setting_may_call_and_read_headers(service: str) -> None:
    if service == "generation":
        app, route = build_generation_service(GenerationSettings()), "/v1/chat/completions"
    else:
        app, route = build_detection_service(DetectionSettings()), "/v1/detect/direct"
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
        for origin, status in (("http://localhost:5173", 200), ("http://localhost:5174", 400)):
            headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            answer = await client.options(route, headers=headers)
            assert answer.status_code == status
            assert (answer.headers.get("access-control-allow-origin") == origin) == (status == 200)
        answer = await client.get("/v1/models", headers={"Origin": "http://localhost:5173"})
    exposed = set(answer.headers["access-control-expose-headers"].split(", "))
    of_the_mark = {"X-TTMark-Status", "X-TTMark-Detectability"}
    assert (exposed & of_the_mark) == (of_the_mark if service == "generation" else set())


@pytest.mark.parametrize("origin", ["https://app.example.org/", "app.example.org", "https://*.org/a", "**"])
def test_what_no_browser_sends_as_an_origin_is_refused_at_the_start(monkeypatch, origin):
    monkeypatch.setenv("TTMARK_CORS_ORIGINS", f"*,{origin}")
    with pytest.raises(StartupError, match="TTMARK_CORS_ORIGINS: each is an origin"):
        GenerationSettings()
