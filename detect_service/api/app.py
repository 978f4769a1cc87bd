"""The detection service as an ASGI application."""

from collections.abc import Callable
from importlib.metadata import version

from fastapi import FastAPI
from opentelemetry.trace import TracerProvider
from prometheus_client import CollectorRegistry

from detect_service.allowance import DocumentAllowance, Unlimited
from detect_service.api.extract import extraction_router
from detect_service.api.keys import keys_router
from detect_service.api.problems import describe_problems
from detect_service.api.routes import detection_router
from detect_service.backend import DetectionBackend
from detect_service.console import console_router
from shared.http.app import Lifespan, create_app
from shared.http.auth import Admit, Authenticate
from shared.http.health import Readiness
from shared.http.limits import HttpLimits
from shared.keys import AuditSink, log_audit
from shared.observability.detection_metrics import DetectionMetrics


def create_detection_app(
    backend: DetectionBackend,
    *,
    authenticate: Authenticate,
    limits: HttpLimits,
    readiness: Callable[[], Readiness],
    lifespan: Lifespan | None = None,
    registry: CollectorRegistry | None = None,
    tracer_provider: TracerProvider | None = None,
    admit: Admit | None = None,
    allowance: DocumentAllowance | None = None,
    audit: AuditSink = log_audit,
) -> FastAPI:
    """Routes, console, errors, health and metrics of the detection service over `backend`.

    `allowance` is asked for the documents of each request; left out: no limit. `audit` hears of each use of
    keys. The rest is as in `create_app`.
    """
    registry = registry if registry is not None else CollectorRegistry()
    app = create_app(
        title="TTMark detection",
        version=version("ttmark"),
        error_style="problem",
        authenticate=authenticate,
        limits=limits,
        readiness=readiness,
        lifespan=lifespan,
        registry=registry,
        tracer_provider=tracer_provider,
        admit=admit,
    )
    metrics = DetectionMetrics(registry)
    app.include_router(detection_router(backend, metrics, allowance or Unlimited(), audit))
    app.include_router(keys_router(backend, limits))
    app.include_router(extraction_router())
    app.include_router(console_router())
    describe_problems(app)
    return app
