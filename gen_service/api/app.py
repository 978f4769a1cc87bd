"""The generation service as an ASGI application."""

from collections.abc import Callable
from importlib.metadata import version

from fastapi import FastAPI
from opentelemetry.trace import NoOpTracerProvider, Tracer, TracerProvider
from prometheus_client import CollectorRegistry

from gen_service.api.allowance import TokenAllowance, Unlimited
from gen_service.api.backend import GenerationBackend
from gen_service.api.observer import Observer
from gen_service.api.respond import Responder
from gen_service.api.routes import generation_router
from shared.http.app import Lifespan, create_app
from shared.http.auth import Admit, Authenticate
from shared.http.health import Readiness
from shared.http.limits import HttpLimits
from shared.keys.audit import AuditSink, log_audit
from shared.observability.generation_metrics import GenerationMetrics


def create_generation_app(
    backend: GenerationBackend,
    *,
    authenticate: Authenticate,
    limits: HttpLimits,
    readiness: Callable[[], Readiness] | None = None,
    lifespan: Lifespan | None = None,
    registry: CollectorRegistry | None = None,
    tracer_provider: TracerProvider | None = None,
    admit: Admit | None = None,
    allowance: TokenAllowance | None = None,
    audit: AuditSink = log_audit,
) -> FastAPI:
    """Routes, errors, health and metrics of the generation service over `backend`.

    `readiness` left out: ready with every model warm and a watermark key in hand. `allowance` is asked for
    the tokens of each request; left out: no limit. `audit` hears of each use of a key. The rest is as in
    `create_app`.
    """
    registry = registry if registry is not None else CollectorRegistry()
    app = create_app(
        title="TTMark generation",
        version=version("ttmark"),
        error_style="openai",
        authenticate=authenticate,
        limits=limits,
        readiness=readiness or (lambda: _readiness(backend)),
        lifespan=lifespan,
        registry=registry,
        tracer_provider=tracer_provider,
        admit=admit,
    )
    observer = Observer(GenerationMetrics(registry), _tracer(tracer_provider))
    keep_alive_seconds = backend.limits.keep_alive_seconds
    responder = Responder(observer, audit, allowance or Unlimited(), keep_alive_seconds=keep_alive_seconds)
    app.include_router(generation_router(backend, responder))
    return app


def _tracer(provider: TracerProvider | None) -> Tracer:
    return (provider or NoOpTracerProvider()).get_tracer("ttmark.generation")


def _readiness(backend: GenerationBackend) -> Readiness:
    models = all(model.generator.ready for model in backend.models.values())
    alive = all(model.generator.alive for model in backend.models.values())
    return Readiness({"models": models, "keys": backend.keys.ready}, alive)
