"""Composition root of the generation service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from gen_service.api.app import create_generation_app
from gen_service.api.backend import GenerationBackend
from services.access_limits import GenerationLimits
from services.key_access import KeyAccess
from services.models import Models
from services.settings import GenerationSettings
from services.tracing import open_tracing
from shared.http.limits import HttpLimits
from shared.keys import TokenLimits, log_audit
from shared.observability.engine_metrics import EngineMetrics
from shared.observability.key_metrics import watch_keys
from shared.observability.limit_metrics import LimitMetrics
from shared.observability.logging import configure_logging


def build_generation_service(settings: GenerationSettings) -> FastAPI:
    """The generation service with its models loaded and warm, ready to be served.

    Raises:
        StartupError: a model cannot be served, or the key store's settings are not usable.
    """
    configure_logging(settings.log_level)
    access = KeyAccess.open(
        settings, service="gen", port=settings.gen_port, max_age_seconds=settings.key_max_age_seconds
    )
    registry = CollectorRegistry()
    models = Models.load(settings, EngineMetrics(registry))
    watch_keys(access.cache, registry)
    defaults = TokenLimits(
        requests_per_minute=settings.requests_per_minute, tokens_per_minute=settings.tokens_per_minute
    )
    allowance = GenerationLimits("gen", access.counters, defaults, LimitMetrics(registry), log_audit)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        models.start()
        async with access:
            yield
        await models.stop(0)

    app = create_generation_app(
        GenerationBackend(models.served, access.cache, settings.default_key),
        authenticate=access.tokens.authenticate,
        admit=allowance.admit,
        allowance=allowance,
        limits=HttpLimits(max_body_bytes=settings.max_body_bytes),
        lifespan=lifespan,
        registry=registry,
        tracer_provider=open_tracing(settings, "ttmark-gen"),
    )
    app.state.drain = models.stop
    return app
