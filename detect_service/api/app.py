"""The detection service as an ASGI application."""

from collections.abc import Callable
from importlib.metadata import version

from fastapi import FastAPI
from prometheus_client import CollectorRegistry
from shared.observability.detection_metrics import DetectionMetrics

from detect_service.api.routes import detection_router
from detect_service.backend import DetectionBackend
from shared.http.app import Lifespan, create_app
from shared.http.auth import Authenticate
from shared.http.health import Readiness
from shared.http.limits import HttpLimits


def create_detection_app(
    backend: DetectionBackend,
    *,
    authenticate: Authenticate,
    limits: HttpLimits,
    readiness: Callable[[], Readiness],
    lifespan: Lifespan | None = None,
) -> FastAPI:
    """Routes, errors, health and metrics of the detection service over `backend`."""
    registry = CollectorRegistry()
    app = create_app(
        title="TTMark detection",
        version=version("ttmark"),
        error_style="problem",
        authenticate=authenticate,
        limits=limits,
        readiness=readiness,
        lifespan=lifespan,
        registry=registry,
    )
    app.include_router(detection_router(backend, DetectionMetrics(registry)))
    return app
