"""TTMARK_CORS_ORIGINS reaches both services as they are composed."""

import hashlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import structlog
from fastapi import FastAPI

from ttmark.services.detection_service import build_detection_service
from ttmark.services.generation_service import build_generation_service
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.startup import StartupError

PAGES = "https://app.example.org, http://localhost:5173"


@pytest.fixture
def composed(
    tmp_path: Path, tiny_model: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Callable[[], FastAPI]]]:
    """How each service is built; a preflight needs neither a started service nor Redis."""
    environment = {
        "TTMARK_STORE_URL": f"sqlite:///{tmp_path / 'keys.db'}",
        "TTMARK_KEK": hashlib.sha256(b"any").hexdigest(),
        "TTMARK_MODEL": str(tiny_model),
        "TTMARK_TOKENIZERS": str(tiny_model),
        "TTMARK_THREADS": "1",
        "TTMARK_CORS_ORIGINS": PAGES,
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield {
        "/v1/chat/completions": lambda: build_generation_service(GenerationSettings()),
        "/v1/detect/direct": lambda: build_detection_service(DetectionSettings()),
    }
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.mark.parametrize("route", ["/v1/chat/completions", "/v1/detect/direct"])
async def test_pages_from_the_origins_of_the_setting_may_call(composed: Any, route: str) -> None:
    transport = httpx.ASGITransport(composed[route]())
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        for origin, status in (("http://localhost:5173", 200), ("http://localhost:5174", 400)):
            headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
            answer = await client.options(route, headers=headers)
            assert answer.status_code == status
            assert (answer.headers.get("access-control-allow-origin") == origin) == (status == 200)


async def test_a_page_can_read_what_an_answer_s_headers_say_of_its_mark(composed: Any) -> None:
    transport = httpx.ASGITransport(composed["/v1/chat/completions"]())
    async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
        answer = await client.get("/v1/models", headers={"Origin": "http://localhost:5173"})
    exposed = answer.headers["access-control-expose-headers"].split(", ")
    assert {"X-TTMark-Status", "X-TTMark-Detectability"} <= set(exposed)


@pytest.mark.parametrize("settings", [GenerationSettings, DetectionSettings])
def test_no_page_may_call_by_default(settings: Any) -> None:
    assert settings().cors_origins == ()


@pytest.mark.parametrize("origin", ["https://app.example.org/", "app.example.org", "https://*.org/a", "**"])
def test_what_no_browser_sends_as_an_origin_is_refused_at_the_start(
    monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    monkeypatch.setenv("TTMARK_CORS_ORIGINS", f"*,{origin}")
    with pytest.raises(StartupError, match="TTMARK_CORS_ORIGINS: each is an origin"):
        GenerationSettings()
