"""The generation service as an ASGI application."""

from dataclasses import replace

from fastapi import FastAPI
from opentelemetry.trace import NoOpTracerProvider

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.answer_headers import described_headers
from ttmark.gen_service.api.backend import GenerationBackend
from ttmark.gen_service.api.default_keys import DefaultKeys
from ttmark.gen_service.api.event_schema import describe_events
from ttmark.gen_service.api.generation_metrics import GenerationMetrics
from ttmark.gen_service.api.observer import Observer
from ttmark.gen_service.api.pipeline import Pipeline
from ttmark.gen_service.api.readings import Reader
from ttmark.gen_service.api.routes import BODY_SCOPES, EVENT_PAYLOADS, generation_router
from ttmark.gen_service.api.verification import Verifier
from ttmark.gen_service.playground.router import playground_router
from ttmark.shared.http.app import AppOptions, create_app
from ttmark.shared.http.health import Readiness
from ttmark.shared.limits.allowances import TokenAllowance


def create_generation_app(
    backend: GenerationBackend,
    options: AppOptions,
    allowance: TokenAllowance | None = None,
    *,
    console_url: str | None = None,
) -> FastAPI:
    """Routes, errors, health and metrics of the generation service over `backend`.

    It is ready with every model warm and a watermark key in hand, the default keys among them. `allowance` is
    asked for the tokens of each request; left out: no limit.
    With a `console_url` there is a playground, which hands texts over to the console at that address.
    """
    default_keys = DefaultKeys(backend)

    def readiness() -> Readiness:
        return _readiness(backend, default_keys)

    options = replace(options, body_scopes=BODY_SCOPES, exposed_headers=tuple(described_headers()))
    app = create_app(options, title="TTMark generation", error_style="openai", readiness=readiness)
    app.state.readiness = readiness
    metrics = GenerationMetrics(options.registry, backend.models, backend.policy.rule_names)
    tracer = (options.tracer_provider or NoOpTracerProvider()).get_tracer("ttmark.generation")
    accounting = Accounting(
        metrics, options.audit, allowance, backend.receipts, backend.manifests, backend.labels
    )
    observer = Observer(metrics, tracer)
    pipeline = Pipeline(backend, observer, accounting)
    verifier = Verifier(backend, observer, metrics, options.audit, allowance)
    reader = Reader(backend, metrics, options.audit, allowance)
    app.include_router(generation_router(backend, pipeline, verifier, reader))
    if console_url is not None:
        app.include_router(playground_router(console_url))
    describe_events(app, *EVENT_PAYLOADS)
    return app


def _readiness(backend: GenerationBackend, default_keys: DefaultKeys) -> Readiness:
    models = all(model.generator.ready for model in backend.models.values())
    alive = all(model.generator.alive for model in backend.models.values())
    checks, reasons = {"models": models, "keys": backend.keys.ready}, {}
    if backend.default_keys:
        problem = default_keys.problem()
        checks["default_key"] = problem is None
        reasons = {} if problem is None else {"default_key": problem}
    return Readiness(checks, alive, reasons)
