"""Composition root of the detection service and its public tier. Imports neither torch nor transformers."""

import gc
import math
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from ttmark.detect_service.api.admission import Terms
from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.api.features import background_jobs, console, files, public_tier
from ttmark.detect_service.ask import Means
from ttmark.detect_service.backend import DetectionBackend, TokenizerSet
from ttmark.detect_service.fair_work.fair_queue import WorkLimits
from ttmark.detect_service.features.console import SignIn
from ttmark.detect_service.features.files import ExtractionLimits, ExtractionWorkers
from ttmark.detect_service.features.jobs.job_store import LEASE_SECONDS
from ttmark.detect_service.features.jobs.redis_jobs import RedisJobs
from ttmark.detect_service.features.jobs.sealed_jobs import Jobs, JobStore
from ttmark.detect_service.features.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.features.public import PUBLIC_PATH, PublicTier
from ttmark.detect_service.features.reader.reads_along import ReadsAlong
from ttmark.services.features.audit.trail import watch_trail
from ttmark.services.key_access import KeyAccess, warn_of_unread
from ttmark.services.settings.cases_and_jobs import JobSettings
from ttmark.services.settings.detection import DetectionSettings
from ttmark.services.settings.store import KeyStoreSettings, sqlite_path
from ttmark.services.startup import StartupError
from ttmark.services.state_folder import model_of
from ttmark.shared.access.oidc import Authenticate, OidcTokens, provider_client
from ttmark.shared.access.scopes import TokenLimits
from ttmark.shared.http.app import AppOptions, beside
from ttmark.shared.http.auth import Guests
from ttmark.shared.http.health import Readiness
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.keys.key_metrics import watch_keys, watch_ledger
from ttmark.shared.limits.allowances import DocumentAllowance, LimitMetrics, WorkBudget
from ttmark.shared.limits.counting_filter import AnswerRule
from ttmark.shared.limits.public_allowance import PublicAllowance, PublicBudget
from ttmark.shared.limits.spent_evidence import AnswerLedger
from ttmark.shared.observability.logging import configure_logging
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing
from ttmark.shared.vault.redis_client import RedisClient
from ttmark.shared.vault.redis_connections import RedisAddress

# How long a worker may hold the interpreter while the event loop waits for it: at each of its system calls.
_SWITCH_SECONDS = 0.0001
# Collections of the young before one of everything: that one holds the interpreter for as long as there are
# objects to look through, and answers with the scores of all blocks are many objects in no cycle.
_FULL_COLLECTIONS = 500
# Of a token without a limit of its own: more than a replica answers. Work is what a tenant is held to.
_DOCUMENTS_PER_MINUTE = 600_000


def open_public_tier(
    settings: DetectionSettings, access: KeyAccess, metrics: LimitMetrics
) -> tuple[PublicTier | None, Guests | None]:
    """The tier, if it is on, and whom it lets in without a token, if anybody.

    Raises:
        StartupError: the file with the public token cannot be read or holds none.
    """
    if not settings.public:
        return None, None
    token = settings.load_public_token()
    budget = PublicBudget.of(settings.public_words_per_day, settings.chance_findings or math.inf)
    key = access.kek.derive(b"ttmark public questions")
    allowance = PublicAllowance(access.counters, budget, metrics, access.audit, key=key)
    tier = PublicTier(settings.public_fpr, settings.public_contact, budget, token is not None, allowance)
    if token is None:
        return tier, None
    addresses = access.kek.derive(b"ttmark public addresses")
    return tier, Guests(PUBLIC_PATH, token, addresses, allowance.admit_guest)


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
    access = KeyAccess.open(
        settings, service="detect", port=settings.detect_port, max_age_seconds=settings.key_max_age_seconds
    )
    registry = CollectorRegistry()
    reader = ReadsAlong(settings.open_reader(), registry, settings.reader_timeout_seconds)
    watch_keys(access.cache, registry)
    watch_ledger(access.ledger, registry)
    watch_trail(access.trail, registry)
    limit_metrics = LimitMetrics(registry)
    allowance = _allowance(settings, access, limit_metrics)
    public, guests = open_public_tier(settings, access, limit_metrics)
    workers = ExtractionWorkers(ExtractionLimits(workers=settings.extract_workers))
    jobs = open_jobs(settings, access)
    authenticate: Authenticate = access.tokens.authenticate
    rules, budget = settings.oidc_rules(), None
    provider, people, sign_in = None, None, None
    if rules is not None:
        provider = provider_client()
        people = OidcTokens(rules, provider)
        authenticate = people.beside(access.tokens.authenticate)
        if settings.oidc_client_id is not None:
            sign_in = SignIn(rules.issuer, settings.oidc_client_id, rules.audience)
    if settings.blocks_per_minute:
        budget = WorkBudget("detect", access.counters, per_minute=settings.blocks_per_minute)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with (
            access,
            workers,
            provider or nullcontext(),
            people.kept_fresh() if people else nullcontext(),
        ):
            warn_of_unread(access.cache.keys, {place: read.fingerprint for place, read in loaded.items()})
            await workers.warm()
            try:
                yield
            finally:
                await reader.aclose()
                await jobs.store.close()

    features = [files(workers), console(sign_in), background_jobs(jobs)]
    if public is not None:
        features.append(public_tier(public))
    return create_detection_app(
        Means(
            DetectionBackend(
                access.cache,
                tokenizers,
                settings.max_document_tokens,
                settings.max_request_blocks,
                label=settings.load_label(),
                draw_secret=access.kek.derive(b"ttmark draws"),
            ),
            settings.manifest_examiner(workers),
            None if reader.state == "none" else reader,
            case_key=settings.load_case_key(),
        ),
        AppOptions(
            authenticate=authenticate,
            admit=allowance.admit,
            limits=HttpLimits(settings.max_body_bytes),
            cors_origins=settings.cors_origins,
            lifespan=beside(lifespan, [reader.watch]),
            registry=registry,
            tracer_provider=settings.open_tracing("ttmark-detect"),
            audit=access.audit,
            guests=guests,
        ),
        readiness=lambda: Readiness({"keys": access.cache.ready}),
        terms=Terms(allowance, budget, WorkLimits(settings.workers, settings.max_queue)),
        features=features,
    )


def _allowance(settings: DetectionSettings, access: KeyAccess, metrics: LimitMetrics) -> DocumentAllowance:
    defaults = TokenLimits(
        requests_per_minute=settings.requests_per_minute, documents_per_minute=_DOCUMENTS_PER_MINUTE
    )
    ledger = None
    if settings.answers_per_passage:
        ledger = AnswerLedger(
            access.counters,
            key=access.kek.derive(b"ttmark answers"),
            rule=AnswerRule(settings.answers_per_passage, findings=settings.chance_findings or math.inf),
        )
    return DocumentAllowance("detect", access.counters, defaults, metrics, access.audit, ledger=ledger)


def open_job_store(url: str, *, lease_seconds: float = LEASE_SECONDS) -> JobStore:
    """Jobs in the Redis of the key store that a URL names, or in a file in the folder of the store's file.

    Nothing is connected to before the first call.
    """
    path = sqlite_path(url)
    if path is None:
        return RedisJobs(RedisClient(RedisAddress.parse(url)), lease_seconds=lease_seconds)
    return SqliteJobs(path.with_name("jobs.db"), lease_seconds=lease_seconds)


def open_jobs(settings: JobSettings, access: KeyAccess) -> Jobs:
    """Jobs beside the key store, with the keys and tokens of the service.

    Raises:
        StartupError: webhooks are allowed and have no secret.
    """
    store = open_job_store(KeyStoreSettings().url())
    return Jobs(store, access.kek, access.tokens.current, settings.job_limits(), settings.open_webhooks())
