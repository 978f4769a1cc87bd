"""The FastAPI application that both services are built from."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.telemetry import TelemetryConfig
from opentelemetry.trace import TracerProvider
from prometheus_client import CollectorRegistry, ProcessCollector
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response

from shared.http.auth import PROTECTED_PREFIX, Admit, Authenticate, BearerMiddleware
from shared.http.error_format import ErrorRenderer, ErrorStyle, InvalidFields, error_renderer
from shared.http.errors import BadRequest, InternalError, MethodNotAllowed, NotFound, ServiceError
from shared.http.health import Readiness, health_router
from shared.http.json_body import JsonBodyMiddleware
from shared.http.limits import HttpLimits
from shared.http.request_id import RequestIdMiddleware
from shared.http.telemetry import TelemetryMiddleware
from shared.observability.http_metrics import HttpMetrics
from shared.observability.readiness_metrics import ReadinessCollector
from shared.observability.tracing import WithoutQueries
from shared.schemas.errors import FieldProblem

_MOST_PROBLEMS = 20

Lifespan = Callable[[FastAPI], AbstractAsyncContextManager[None]]


def create_app(
    *,
    title: str,
    version: str,
    error_style: ErrorStyle,
    authenticate: Authenticate,
    limits: HttpLimits,
    readiness: Callable[[], Readiness],
    lifespan: Lifespan | None = None,
    registry: CollectorRegistry | None = None,
    tracer_provider: TracerProvider | None = None,
    admit: Admit | None = None,
) -> FastAPI:
    """An application with request ids, access log, metrics, authentication, body limits and health routes.

    Args:
        error_style: how every error looks, those of the framework and of a bug included.
        authenticate: gives the principal of a token; raises InvalidToken or another KeyStoreError.
        readiness: asked on each /readyz.
        registry: where the metrics go and what /metrics shows; a new one by default.
        tracer_provider: makes a span of each request under `/v1`, a child of the caller's.
        admit: asked with the principal of each request. None limits nothing.
    """
    render = error_renderer(error_style)
    registry = registry if registry is not None else CollectorRegistry()
    ProcessCollector(registry=registry)
    ReadinessCollector(lambda: readiness().checks, registry)
    app = FastAPI(
        title=title,
        version=version,
        lifespan=lifespan,
        telemetry=_telemetry(tracer_provider),
        docs_url=None,  # its page loads scripts from a CDN
        redoc_url=None,
        redirect_slashes=False,
        middleware=[
            Middleware(RequestIdMiddleware),
            Middleware(TelemetryMiddleware, metrics=HttpMetrics(registry, version), render=render),
            Middleware(BearerMiddleware, authenticate=authenticate, admit=admit, render=render),
            Middleware(JsonBodyMiddleware, limits=limits, render=render),
        ],
    )
    _install_error_handlers(app, render)
    app.include_router(health_router(readiness, registry))
    return app


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
        return render(InvalidFields(_problems(error)), request.scope)

    async def on_http_exception(request: Request, error: Any) -> Response:
        return render(_from_http_exception(error), request.scope)

    app.add_exception_handler(ServiceError, on_service_error)
    app.add_exception_handler(RequestValidationError, on_invalid_fields)
    app.add_exception_handler(HTTPException, on_http_exception)


def _problems(error: RequestValidationError) -> list[FieldProblem]:
    return [
        FieldProblem(field=_path(item["loc"]), message=_message(item))
        for item in error.errors()[:_MOST_PROBLEMS]
    ]


def _path(location: tuple[int | str, ...]) -> str:
    """`("body", "messages", 0, "role")` as `messages[0].role`."""
    path = ""
    for part in location[1:]:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _message(item: dict[str, Any]) -> str:
    if item["type"] == "missing" and item["loc"] == ("body",):
        return "A JSON body is required."
    return str(item["msg"]).removeprefix("Value error, ")


def _from_http_exception(error: HTTPException) -> ServiceError:
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return NotFound("There is no such route.", headers=headers)
    if error.status_code == 405:
        return MethodNotAllowed("The route does not have this method.", headers=headers)
    if error.status_code < 500:
        return BadRequest(str(error.detail), headers=headers)
    return InternalError("Something went wrong on our side.", headers=headers)
