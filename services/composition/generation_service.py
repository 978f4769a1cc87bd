"""Composition root of the generation service."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from ttmark.gen_service.api.app import create_generation_app
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.watermark_report import ReceiptRule
from ttmark.gen_service.engine.loop.engine_metrics import EngineMetrics
from ttmark.services.composition.key_access import KeyAccess, warn_of_unread
from ttmark.services.composition.served_models import Models
from ttmark.services.settings.generation import GenerationSettings
from ttmark.services.state_folder import known_tokenizers
from ttmark.shared.access.scopes import TokenLimits
from ttmark.shared.events import to_all
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.keys.key_metrics import watch_volume
from ttmark.shared.keys.rotation_by_volume import VolumeCounter
from ttmark.shared.limits.rate_limits import LimitMetrics, TokenAllowance
from ttmark.shared.observability.logging import configure_logging


def build_generation_service(settings: GenerationSettings) -> FastAPI:
    """The generation service with its models loaded and warm, ready to be served.

    Raises:
        StartupError: a model cannot be served, or settings are not usable.
    """
    configure_logging(settings.log_level)
    registry = CollectorRegistry()
    access = KeyAccess.open(
        settings,
        registry,
        service="gen",
        port=settings.gen_port,
        max_age_seconds=settings.key_max_age_seconds,
    )
    models = Models.load(settings, EngineMetrics(registry))
    volume = VolumeCounter(access.store, lambda: access.cache.keys)
    watch_volume(volume, registry)
    defaults = TokenLimits(
        requests_per_minute=settings.requests_per_minute, tokens_per_minute=settings.tokens_per_minute
    )
    allowance = TokenAllowance("gen", access.counters, defaults, LimitMetrics(registry), access.audit)

    @asynccontextmanager
    async def lifespan(service: FastAPI) -> AsyncIterator[None]:
        models.start()
        async with access, volume:
            served = {name: model.generator.tokenizer.fingerprint for name, model in models.served.items()}
            known = known_tokenizers(settings.state)
            await asyncio.to_thread(warn_of_unread, access.cache.keys, served, known)
            service.state.readiness()  # logs what keeps the service from getting ready, whoever asks for it
            yield
        await models.stop(0)

    app = create_generation_app(
        GenerationBackend(
            models.served,
            access.cache,
            settings.default_key,
            receipts=ReceiptRule(settings.detectability_fpr, settings.detectability_for),
            hooks=[hook for feature in models.features for hook in feature.hooks],
            opening_bits=settings.opening_bits,
            ignore_unknown_fields=settings.unknown_fields == "ignore",
        ),
        AppOptions(
            authenticate=access.tokens.authenticate,
            admit=allowance.admit,
            limits=HttpLimits(settings.max_body_bytes),
            cors_origins=settings.cors_origins,
            lifespan=lifespan,
            registry=registry,
            tracer_provider=settings.open_tracing("ttmark-gen"),
            audit=to_all(volume.hear, access.audit),
        ),
        allowance,
        models.features,
    )
    app.state.drain = models.stop
    return app
