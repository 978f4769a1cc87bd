"""The detection application with parts of a test's own, in process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from prometheus_client import CollectorRegistry

from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.backend import DetectionBackend
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.auth import Authenticate
from ttmark.shared.http.health import Readiness


@asynccontextmanager
async def served(
    backend: DetectionBackend,
    authenticate: Authenticate,
    *,
    options: dict[str, Any] | None = None,
    raises: bool = True,
    headers: dict[str, str] | None = None,
    **parts: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of it; `options` are those of any HTTP application, `raises` is off to see a 500."""
    given = {"registry": CollectorRegistry()} | (options or {})
    app = create_detection_app(
        backend, AppOptions(authenticate=authenticate, **given), readiness=lambda: Readiness({}), **parts
    )
    transport = httpx.ASGITransport(app, raise_app_exceptions=raises)
    async with httpx.AsyncClient(transport=transport, base_url="http://detect", headers=headers) as client:
        yield client
