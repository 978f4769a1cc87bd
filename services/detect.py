"""Composition root of the detection service. Imports neither torch nor transformers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from detect_service.api.app import create_detection_app
from detect_service.backend import DetectionBackend
from detect_service.tokenizers import TokenizerSet
from gen_service.demo_model import DEMO_MODEL_PATH
from services.access_limits import DetectionLimits
from services.key_access import KeyAccess
from services.runtime import StartupError
from services.settings import DetectionSettings
from services.tracing import open_tracing
from shared.http.health import Readiness
from shared.http.limits import HttpLimits
from shared.keys import NearDuplicateThrottle, TokenLimits, log_audit
from shared.observability.key_metrics import watch_keys
from shared.observability.limit_metrics import LimitMetrics
from shared.observability.logging import configure_logging
from shared.tokenization import TokenizerMissing


def build_detection_service(settings: DetectionSettings) -> FastAPI:
    """The detection service, ready to be served.

    Raises:
        StartupError: a tokenizer is missing, or the key store or its key-encryption key is not usable.
    """
    configure_logging(settings.log_level)
    try:
        tokenizers = TokenizerSet.load(settings.tokenizers or [DEMO_MODEL_PATH])
    except TokenizerMissing as error:
        raise StartupError(str(error)) from error
    access = KeyAccess.open(
        settings, service="detect", port=settings.detect_port, max_age_seconds=settings.key_max_age_seconds
    )
    registry = CollectorRegistry()
    watch_keys(access.cache, registry)
    allowance = _limits(settings, access, registry)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with access:
            yield

    return create_detection_app(
        DetectionBackend(access.cache, tokenizers, settings.max_document_tokens),
        authenticate=access.tokens.authenticate,
        admit=allowance.admit,
        allowance=allowance,
        limits=HttpLimits(max_body_bytes=settings.max_body_bytes),
        readiness=lambda: Readiness({"keys": access.cache.ready}),
        lifespan=lifespan,
        registry=registry,
        tracer_provider=open_tracing(settings, "ttmark-detect"),
    )


def _limits(settings: DetectionSettings, access: KeyAccess, registry: CollectorRegistry) -> DetectionLimits:
    defaults = TokenLimits(
        requests_per_minute=settings.requests_per_minute, documents_per_minute=settings.documents_per_minute
    )
    throttle = None
    if settings.variants_per_document:
        throttle = NearDuplicateThrottle(
            access.counters,
            key=access.kek.derive(b"ttmark near duplicates"),
            limit=settings.variants_per_document,
            window_seconds=settings.variants_pause_seconds,
        )
    metrics = LimitMetrics(registry)
    return DetectionLimits("detect", access.counters, defaults, metrics, log_audit, throttle=throttle)
