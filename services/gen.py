"""Composition root of the generation service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from gen_service.api.app import create_generation_app
from gen_service.api.backend import GenerationBackend, ServedModel
from gen_service.engine import Engine, EngineSettings, ModelLoadError
from services.access_limits import GenerationLimits
from services.chat_template import read_chat_template
from services.key_access import KeyAccess
from services.model_folder import model_id, resolve_model
from services.runtime import StartupError
from services.settings import GenerationSettings
from services.tracing import open_tracing
from shared.http.limits import HttpLimits
from shared.keys import TokenLimits, log_audit
from shared.observability.engine_metrics import EngineMetrics
from shared.observability.key_metrics import watch_keys
from shared.observability.limit_metrics import LimitMetrics
from shared.observability.logging import configure_logging


def build_generation_service(settings: GenerationSettings) -> FastAPI:
    """The generation service with its model loaded and warm, ready to be served.

    Raises:
        StartupError: the model cannot be served, or the key store's settings are not usable.
    """
    configure_logging(settings.log_level)
    access = KeyAccess.open(
        settings, service="gen", port=settings.gen_port, max_age_seconds=settings.key_max_age_seconds
    )
    folder = resolve_model(settings.model)
    template = read_chat_template(folder)
    engine_settings = EngineSettings(
        model_id=model_id(settings.model),
        dtype=settings.dtype,
        threads=settings.threads,
        max_sequences=settings.max_concurrency,
        max_waiting=settings.max_queue,
        max_branches=settings.max_branches,
        request_seconds=settings.request_seconds,
    )
    try:
        engine = Engine.load(str(folder), engine_settings)
    except ModelLoadError as error:
        raise StartupError(str(error)) from error
    registry = CollectorRegistry()
    engine.record_in(EngineMetrics(registry))
    watch_keys(access.cache, registry)
    defaults = TokenLimits(
        requests_per_minute=settings.requests_per_minute, tokens_per_minute=settings.tokens_per_minute
    )
    allowance = GenerationLimits("gen", access.counters, defaults, LimitMetrics(registry), log_audit)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        engine.start()
        async with access:
            yield
        await drain(0)

    async def drain(seconds: float) -> None:
        await asyncio.to_thread(engine.stop, seconds)

    app = create_generation_app(
        GenerationBackend(
            models={engine.model_id: ServedModel(engine, template)},
            keys=access.cache,
            default_key=settings.default_key,
        ),
        authenticate=access.tokens.authenticate,
        admit=allowance.admit,
        allowance=allowance,
        limits=HttpLimits(max_body_bytes=settings.max_body_bytes),
        lifespan=lifespan,
        registry=registry,
        tracer_provider=open_tracing(settings, "ttmark-gen"),
    )
    app.state.drain = drain
    return app
