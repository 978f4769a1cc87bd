"""The generation service as an ASGI application."""

from collections.abc import Sequence
from dataclasses import replace

import structlog
from fastapi import FastAPI
from opentelemetry.trace import NoOpTracerProvider

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.described import EVENT_PAYLOADS, describe_events
from ttmark.gen_service.api.features import GenerationFeature
from ttmark.gen_service.api.generation_metrics import GenerationMetrics
from ttmark.gen_service.api.long_bodies import run_long
from ttmark.gen_service.api.plan.backend import GenerationBackend
from ttmark.gen_service.api.plan.stages import DEFAULT_RULE
from ttmark.gen_service.api.plan.watermark_report import described_headers
from ttmark.gen_service.api.routes import BODY_SCOPES, IgnoringRoute, JsonRoute, generation_router
from ttmark.shared.http.app import AppOptions, create_app
from ttmark.shared.http.health import Readiness
from ttmark.shared.keys.held_keys import ForeignKey
from ttmark.shared.limits.rate_limits import TokenAllowance

_LIST = "`ttmark keys list` shows those that there are"


class DefaultKeys:
    """Looks until each key is there once. What happens to a key afterwards is its tenant's business: it must
    not take the service from the others."""

    def __init__(self, backend: GenerationBackend) -> None:
        self._backend = backend
        self._missing = list(backend.default_keys)
        self._said: str | None = None

    def problem(self) -> str | None:
        """What is wrong with a key, in one line that is logged once; None where nothing is."""
        if not self._backend.keys.ready:
            return "the keys are not read yet" if self._missing else None
        self._missing = [key_id for key_id in self._missing if self._problem_of(key_id)]
        problem = self._problem_of(self._missing[0]) if self._missing else None
        if problem not in (None, self._said):
            structlog.get_logger("ttmark.keys").error("default_key_not_usable", reason=problem)
        self._said = problem
        return problem

    def _problem_of(self, key_id: str) -> str | None:
        key = self._backend.keys.get(key_id)
        if key is None:
            return f"TTMARK_DEFAULT_KEY: there is no key {key_id}; {_LIST}, `ttmark keys create` makes one"
        if isinstance(key, ForeignKey):
            return f"TTMARK_DEFAULT_KEY: the key {key_id} is another system's, and marks no text; {_LIST}"
        if key.primary is None:
            return f"TTMARK_DEFAULT_KEY: the key {key_id} has no version in use; {_LIST}"
        models = self._backend.models.items()
        fingerprint = key.profile.tokenizer_fingerprint
        if all(model.generator.tokenizer.fingerprint != fingerprint for _, model in models):
            names = ", ".join(name for name, _ in models)
            return (
                f"TTMARK_DEFAULT_KEY: the key {key_id} is for another tokenizer than that of {names}; {_LIST}"
            )
        return None


def create_generation_app(
    backend: GenerationBackend,
    options: AppOptions,
    allowance: TokenAllowance | None = None,
    features: Sequence[GenerationFeature] = (),
) -> FastAPI:
    """Routes, errors, health and metrics of the generation service over `backend`.

    It is ready with every model warm and a watermark key in hand, the default keys among them. `allowance` is
    asked for the tokens of each request; left out: no limit. `features` are the optional ones.
    """
    default_keys = DefaultKeys(backend)

    def readiness() -> Readiness:
        models = all(model.generator.ready for model in backend.models.values())
        alive = all(model.generator.alive for model in backend.models.values())
        checks, reasons = {"models": models, "keys": backend.keys.ready}, {}
        if backend.default_keys:
            problem = default_keys.problem()
            checks["default_key"] = problem is None
            reasons = {} if problem is None else {"default_key": problem}
        return Readiness(checks, alive, reasons)

    exposed = tuple(described_headers())
    scopes = BODY_SCOPES | {path: scope for one in features for path, scope in one.body_scopes.items()}
    options = replace(options, body_scopes=scopes, exposed_headers=exposed, run_long=run_long)
    app = create_app(options, title="TTMark generation", error_style="openai", readiness=readiness)
    app.state.readiness = readiness
    tracer = (options.tracer_provider or NoOpTracerProvider()).get_tracer("ttmark.generation")
    rules = [DEFAULT_RULE, *(rule for hook in backend.hooks for rule in hook.rules)]
    metrics = GenerationMetrics(options.registry, backend.models, rules, tracer)
    books = Accounting(backend, metrics, options.audit, allowance)
    route = IgnoringRoute if backend.ignore_unknown_fields else JsonRoute
    for routes in (generation_router, *(one.routes for one in features if one.routes)):
        app.include_router(routes(books, route))
    describe_events(app, *EVENT_PAYLOADS, *(payload for one in features for payload in one.events))
    return app
