"""The FastAPI application that both services are built from."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import pairwise
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from opentelemetry.trace import TracerProvider
from prometheus_client import CollectorRegistry, ProcessCollector
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from ttmark.shared.access.scopes import Scope as AccessScope
from ttmark.shared.events import EventSink, log_event
from ttmark.shared.http.auth import PROTECTED_PREFIX, Admit, Authenticate, BearerMiddleware, Guests
from ttmark.shared.http.health import Readiness, ReadinessCollector, health_router
from ttmark.shared.http.request_body import BodyMiddleware, HttpLimits, RunLong
from ttmark.shared.http.request_id import HEADER as REQUEST_ID_HEADER
from ttmark.shared.http.request_id import RequestIdMiddleware
from ttmark.shared.http.service_errors import (
    BadRequest,
    ErrorRenderer,
    ErrorStyle,
    InternalError,
    InvalidFields,
    MethodNotAllowed,
    NotFound,
    ServiceError,
    StoreDown,
    error_renderer,
)
from ttmark.shared.http.telemetry import HttpMetrics, TelemetryMiddleware
from ttmark.shared.observability.memory import watch_memory
from ttmark.shared.observability.tracing import WithoutQueries
from ttmark.shared.schemas.fields import FieldProblem
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable

_MOST_PROBLEMS = 20

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, kw_only=True)
class AppOptions:
    """What the composition root decides of either service's application.

    Attributes:
        authenticate: gives the principal of a token; raises InvalidToken or another KeyStoreError.
        lifespan: runs around the time in which the application serves.
        registry: where the metrics go and what /metrics shows.
        tracer_provider: makes a span of each request under `/v1`, a child of the caller's.
        admit: asked with the principal of each request. None limits nothing.
        cors_origins: web pages from these origins may call the service; `*` stands for all of them.
        exposed_headers: that such pages may read, besides those of every answer.
        audit: hears of each use of a key.
        run_long: parses long bodies off the event loop. None parses them on it.
        body_scopes: what callers need, by path, before their body is read; these paths need a token.
        guests: who is let in without a token, and where. None: nobody.
    """

    authenticate: Authenticate
    limits: HttpLimits = field(default_factory=HttpLimits)
    lifespan: Lifespan | None = None
    registry: CollectorRegistry = field(default_factory=CollectorRegistry)
    tracer_provider: TracerProvider | None = None
    admit: Admit | None = None
    cors_origins: Collection[str] = ()
    exposed_headers: Collection[str] = ()
    audit: EventSink = log_event
    run_long: RunLong | None = None
    body_scopes: Mapping[str, AccessScope] = field(default_factory=dict)
    guests: Guests | None = None


def create_app(
    options: AppOptions, *, title: str, error_style: ErrorStyle, readiness: Callable[[], Readiness]
) -> FastAPI:
    """An application with request ids, access log, metrics, authentication, body limits and health routes.

    Args:
        error_style: how every error looks, those of the framework and of a bug included.
        readiness: asked on each /readyz.
    """
    render = error_renderer(error_style)
    registry, release = options.registry, version("ttmark")
    ProcessCollector(registry=registry)
    watch_memory(registry)

    def readiness_until_it_leaves() -> Readiness:
        state = readiness()
        if not app.state.leaving:
            return state
        reasons = {**state.reasons, "staying": "the service is about to end"}
        return replace(state, checks={**state.checks, "staying": False}, reasons=reasons)

    ReadinessCollector(lambda: readiness_until_it_leaves().checks, registry)
    app = FastAPI(
        title=title,
        version=release,
        lifespan=options.lifespan,
        telemetry=_telemetry(options.tracer_provider),
        docs_url=None,  # its page loads scripts from a CDN
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestIdMiddleware),
            *_cors(options.cors_origins, options.exposed_headers),
            Middleware(TelemetryMiddleware, metrics=HttpMetrics(registry, release), render=render),
            Middleware(
                BearerMiddleware,
                authenticate=options.authenticate,
                admit=options.admit,
                render=render,
                guests=options.guests,
                paths=options.body_scopes,
            ),
            Middleware(
                BodyMiddleware,
                limits=options.limits,
                render=render,
                run_long=options.run_long,
                scopes=options.body_scopes,
            ),
        ],
    )
    app.state.leaving = False
    _install_error_handlers(app, render)
    app.include_router(health_router(readiness_until_it_leaves, registry))
    return app


def _cors(origins: Collection[str], exposed: Collection[str]) -> list[Middleware]:
    if not origins:
        return []
    # Outside of authentication, because a browser asks without a token, and of everything that can refuse, so
    # that a page can read why. Tokens travel in a header, so there are no credentials in the sense of CORS.
    return [
        Middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=("GET", "HEAD", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=(REQUEST_ID_HEADER, "Retry-After", *exposed),
        )
    ]


def _telemetry(provider: TracerProvider | None) -> TelemetryConfig:
    # All of it is stated: what is left out the framework takes from global providers and the environment, and
    # its logs would hold the messages of exceptions.
    return {
        "tracer_provider": None if provider is None else WithoutQueries(provider),
        "tracing": provider is not None,
        "operation_spans": False,
        "metrics": False,
        "logs": False,
        "auto_configure": False,
        "exclude": lambda scope: not scope["path"].startswith(PROTECTED_PREFIX),
    }


def _install_error_handlers(app: FastAPI, render: ErrorRenderer) -> None:
    async def on_service_error(request: Request, error: Any) -> Response:
        return render(error, request.scope)

    async def on_invalid_fields(request: Request, error: Any) -> Response:
        problems = [
            FieldProblem(field=_path(item["loc"]), message=_message(item))
            for item in error.errors()[:_MOST_PROBLEMS]
        ]
        return render(InvalidFields(problems), request.scope)

    async def on_http_exception(request: Request, error: Any) -> Response:
        found = _from_http_exception(error, request.url.path)
        if isinstance(found, MethodNotAllowed):
            found.headers["Allow"] = ", ".join(sorted(_methods(request.app.routes, request.scope)))
        return render(found, request.scope)

    async def on_store_error(request: Request, _: Any) -> Response:
        return render(StoreDown("The store cannot be reached at the moment.", retry_after=1), request.scope)

    app.add_exception_handler(ServiceError, on_service_error)
    app.add_exception_handler(StoreUnavailable, on_store_error)
    app.add_exception_handler(RequestValidationError, on_invalid_fields)
    app.add_exception_handler(HTTPException, on_http_exception)


def _path(location: tuple[int | str, ...]) -> str:
    """`("body", "messages", 0, "role")` as `messages[0].role`.

    Where a part is one of several kinds, the kind stands in the location too, before a field of its name.
    """
    path = ""
    for before, part in pairwise(location):
        if part == before:
            continue
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _message(item: dict[str, Any]) -> str:
    if item["type"] == "missing" and item["loc"] == ("body",):
        return "A body is required."
    return str(item["msg"]).removeprefix("Value error, ")


def _methods(routes: Iterable[BaseRoute], scope: Scope) -> set[str]:
    """Of all routes with the path that was asked; the framework names those of the first one."""
    methods: set[str] = set()
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            methods |= _methods(included.routes, scope)
        elif route.matches(scope)[0] is not Match.NONE:
            methods |= getattr(route, "methods", None) or set()
    return methods


def _from_http_exception(error: HTTPException, path: str) -> ServiceError:
    headers = dict(error.headers or {})
    if error.status_code == 404:
        hint = "." if path.startswith("/v1/") else "; those of the API begin with /v1."
        return NotFound(f"There is no such route{hint}", headers=headers)
    if error.status_code == 405:
        return MethodNotAllowed("The route does not have this method.", headers=headers)
    if error.status_code < 500:
        return BadRequest(str(error.detail), headers=headers)
    return InternalError("Something went wrong on our side.", headers=headers)


def beside(lifespan: Lifespan | None, works: Sequence[Callable[[], Coroutine[Any, Any, None]]]) -> Lifespan:
    """A lifespan that runs `works` inside of another one, and cancels them before that one ends."""

    @asynccontextmanager
    async def both(app: FastAPI) -> AsyncIterator[None]:
        async with lifespan(app) if lifespan is not None else nullcontext():
            tasks = [asyncio.create_task(work()) for work in works]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    return both
