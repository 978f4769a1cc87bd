"""One log line and one set of measurements for each request, and the answer to an error nobody expected."""

import asyncio
import platform
import time
from dataclasses import dataclass

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.auth import PROTECTED_PREFIX
from ttmark.shared.http.service_errors import ErrorRenderer, InternalError

_log = structlog.get_logger("ttmark.http")
_LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class HttpMetrics:
    """Requests by route template, method and status; latency; requests in flight; build info."""

    def __init__(self, registry: CollectorRegistry, version: str) -> None:
        self._requests = Counter(
            "ttmark_http_requests",
            "HTTP requests answered.",
            ["route", "method", "status"],
            registry=registry,
        )
        self._latency = Histogram(
            "ttmark_http_request_duration_seconds",
            "Time from the request's head to the end of its response.",
            ["route", "method", "model"],
            buckets=_LATENCY_BUCKETS,
            registry=registry,
        )
        self.in_flight = Gauge(
            "ttmark_http_requests_in_flight", "HTTP requests being answered.", registry=registry
        )
        build = Info("ttmark_build", "What is running.", registry=registry)
        build.info({"version": version, "python": platform.python_version()})

    def observe(self, route: str, method: str, status: int, model: str, seconds: float) -> None:
        """Records one answered request; `route` is a template, never a path from a client, and `model` the
        operator's name of the one that it is about, or empty."""
        self._requests.labels(route, method, str(status)).inc()
        self._latency.labels(route, method, model).observe(seconds)


CLIENT_CLOSED_REQUEST = 499
UNMATCHED_ROUTE = "unmatched"
# Refused before it reached a route: no token, a body that is not strict JSON, no such route.
REFUSED_ROUTE = PROTECTED_PREFIX + "*"
_QUIET_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


@dataclass(frozen=True, eq=False)
class TelemetryMiddleware:
    """Counts and logs requests by route template; never logs bodies, query strings or tokens."""

    app: ASGIApp
    metrics: HttpMetrics
    render: ErrorRenderer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status: int | None = None

        async def send_noting_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        with self.metrics.in_flight.track_inprogress():
            try:
                await self.app(scope, receive, send_noting_status)
            except ClientDisconnect:
                status = CLIENT_CLOSED_REQUEST
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                raise
            except BaseException:  # a panic of a library in Rust is no Exception
                _log.exception("unhandled_error", route=_route(scope))
                if status is not None:
                    raise
                await self._internal_error(scope)(scope, receive, send_noting_status)
            finally:
                self._record(scope, status or CLIENT_CLOSED_REQUEST, time.perf_counter() - started)

    def _internal_error(self, scope: Scope) -> Response:
        message = "Something went wrong on our side; the logs have it under the request id."
        try:
            return self.render(InternalError(message), scope)
        except Exception:
            _log.exception("error_not_rendered", route=_route(scope))
            return Response(message, 500, media_type="text/plain")

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        state = scope["state"]
        self.metrics.observe(route, method, status, state.get("model", ""), seconds)
        if route in _QUIET_ROUTES:
            return
        details = {"error_code": state["error_code"]} if "error_code" in state else {}
        principal: Principal | None = state.get("principal")
        if principal is not None:
            details |= {"token_id": principal.token_id, "tenant": principal.tenant}
        milliseconds = round(seconds * 1000, 1)
        _log.info("request", route=route, method=method, status=status, duration_ms=milliseconds, **details)


def _route(scope: Scope) -> str:
    template = getattr(scope.get("route"), "path", None)
    if template is not None:
        return str(template)
    return REFUSED_ROUTE if scope["path"].startswith(PROTECTED_PREFIX) else UNMATCHED_ROUTE
