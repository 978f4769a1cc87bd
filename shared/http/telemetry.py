"""One log line and one set of measurements for each request, and the answer to an error nobody expected."""

import time

import structlog
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ttmark.shared.access.scopes import Principal
from ttmark.shared.http.auth import PROTECTED_PREFIX
from ttmark.shared.http.error_format import ErrorRenderer
from ttmark.shared.http.service_errors import InternalError
from ttmark.shared.observability.http_metrics import HttpMetrics

CLIENT_CLOSED_REQUEST = 499
UNMATCHED_ROUTE = "unmatched"
# Refused before it reached a route: no token, a body that is not strict JSON, no such route.
REFUSED_ROUTE = PROTECTED_PREFIX + "*"
_QUIET_ROUTES = frozenset({"/healthz", "/readyz", "/metrics"})
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


class TelemetryMiddleware:
    """Counts and logs requests by route template; never logs bodies, query strings or tokens."""

    def __init__(self, app: ASGIApp, metrics: HttpMetrics, render: ErrorRenderer) -> None:
        self.app = app
        self.metrics = metrics
        self.render = render
        self.log = structlog.get_logger("ttmark.http")

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
            except Exception:
                self.log.exception("unhandled_error", route=_route(scope))
                if status is not None:
                    raise
                error = InternalError(
                    "Something went wrong on our side; the logs have it under the request id."
                )
                await self.render(error, scope)(scope, receive, send_noting_status)
            finally:
                self._record(scope, status or CLIENT_CLOSED_REQUEST, time.perf_counter() - started)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        route = _route(scope)
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self.metrics.observe(route, method, status, seconds)
        if route not in _QUIET_ROUTES:
            self.log.info(
                "request",
                route=route,
                method=method,
                status=status,
                duration_ms=round(seconds * 1000, 1),
                **_details(scope),
            )


def _details(scope: Scope) -> dict[str, str]:
    state = scope["state"]
    details = {"error_code": state["error_code"]} if "error_code" in state else {}
    principal: Principal | None = state.get("principal")
    if principal is not None:
        details |= {"token_id": principal.token_id, "tenant": principal.tenant}
    return details


def _route(scope: Scope) -> str:
    template = getattr(scope.get("route"), "path", None)
    if template is not None:
        return str(template)
    return REFUSED_ROUTE if scope["path"].startswith(PROTECTED_PREFIX) else UNMATCHED_ROUTE
