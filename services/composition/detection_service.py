"""Composition root of the detection service and its public tier. Imports neither torch nor transformers."""

import gc
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from ttmark.detect_service.api.admission import Terms
from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.fair_work.fair_queue import WorkLimits
from ttmark.services.composition.key_access import KeyAccess, warn_of_unread
from ttmark.services.composition.opening import Opening
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.startup import StartupError
from ttmark.services.state_folder import model_of
from ttmark.shared.access.scopes import TokenLimits
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.auth import Authenticate
from ttmark.shared.http.health import Readiness
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.limits.rate_limits import DocumentAllowance, LimitMetrics, WorkBudget
from ttmark.shared.observability.logging import configure_logging
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing

# How long a worker may hold the interpreter while the event loop waits for it: at each of its system calls.
_SWITCH_SECONDS = 0.0001
# Collections of the young before one of everything: that one holds the interpreter for as long as there are
# objects to look through, and answers with the scores of all blocks are many objects in no cycle.
_FULL_COLLECTIONS = 500
# Of a token without a limit of its own: more than a replica answers. Work is what a tenant is held to.
_DOCUMENTS_PER_MINUTE = 600_000


def build_detection_service(settings: DetectionSettings) -> FastAPI:
    """The detection service, ready to be served.

    Raises:
        StartupError: a tokenizer is missing, or the key store or its key-encryption key is not usable.
    """
    configure_logging(settings.log_level)
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(700, 10, _FULL_COLLECTIONS)
    try:
        loaded = {str(folder): TextTokenizer.load(folder) for folder in settings.tokenizer_folders()}
    except TokenizerMissing as error:
        raise StartupError(str(error)) from error
    # Of models with one tokenizer the first gives the name.
    names = {read.fingerprint: model_of(place, read.fingerprint) for place, read in reversed(loaded.items())}
    tokenizers = TokenizerSet(loaded.values(), names)
    registry = CollectorRegistry()
    access = KeyAccess.open(
        settings,
        registry,
        service="detect",
        port=settings.detect_port,
        max_age_seconds=settings.key_max_age_seconds,
    )
    limit_metrics = LimitMetrics(registry)
    allowance, budget = _allowance(settings, access, limit_metrics), None
    opening = Opening(settings, access, registry, limit_metrics, allowance)
    features = list(opening.features())
    authenticate: Authenticate = access.tokens.authenticate
    for feature in features:
        authenticate = feature.authenticate(authenticate) if feature.authenticate else authenticate
    if settings.blocks_per_minute:
        budget = WorkBudget("detect", access.counters, per_minute=settings.blocks_per_minute)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as running:
            await running.enter_async_context(access)
            for one in (one for feature in features for one in feature.running):
                await running.enter_async_context(one)
            warn_of_unread(access.cache.keys, {place: read.fingerprint for place, read in loaded.items()})
            yield

    return create_detection_app(
        means_of(
            DetectionBackend(
                access.cache,
                tokenizers,
                settings.max_document_tokens,
                settings.max_request_blocks,
                draw_secret=access.kek.derive(b"ttmark draws"),
            )
        ),
        AppOptions(
            authenticate=authenticate,
            admit=allowance.admit,
            limits=HttpLimits(settings.max_body_bytes),
            cors_origins=settings.cors_origins,
            lifespan=lifespan,
            registry=registry,
            tracer_provider=settings.open_tracing("ttmark-detect"),
            audit=access.audit,
            guests=next((feature.guests for feature in features if feature.guests), None),
        ),
        readiness=lambda: Readiness({"keys": access.cache.ready}),
        terms=Terms(allowance, budget, WorkLimits(settings.workers, settings.max_queue)),
        features=features,
    )


def _allowance(settings: DetectionSettings, access: KeyAccess, metrics: LimitMetrics) -> DocumentAllowance:
    defaults = TokenLimits(
        requests_per_minute=settings.requests_per_minute, documents_per_minute=_DOCUMENTS_PER_MINUTE
    )
    return DocumentAllowance("detect", access.counters, defaults, metrics, access.audit)
