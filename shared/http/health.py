"""/healthz, /readyz and /metrics: open to all, and outside the access log."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from pydantic import BaseModel, Field

from ttmark.shared.schemas.fields import left_out


class Liveness(BaseModel):
    """Whether the process works, or has to be restarted."""

    status: Literal["ok", "dead"]


class ReadinessReport(BaseModel):
    """Whether requests are accepted, check by check."""

    status: Literal["ready", "not_ready"]
    checks: dict[str, bool] = Field(description="Each condition of readiness and whether it holds.")
    reasons: dict[str, str] | None = left_out("Why conditions do not hold, and what to do.")


class ReadinessCollector(Collector):
    """Asks at each scrape; the label's values are the names that the service gives its checks."""

    def __init__(self, checks: Callable[[], Mapping[str, bool]], registry: CollectorRegistry) -> None:
        self._checks = checks
        registry.register(self)

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """The family without its values, so that registering asks nobody."""
        yield GaugeMetricFamily(
            "ttmark_ready", "1 for each condition of /readyz that holds.", labels=["check"]
        )

    def collect(self) -> Iterator[GaugeMetricFamily]:
        (family,) = self.describe()
        for name, holds in self._checks().items():
            family.add_metric([name], float(holds))
        yield family


@dataclass(frozen=True, slots=True)
class Readiness:
    """The conditions under which a service takes requests, each with whether it holds now.

    Attributes:
        alive: false once nothing but a restart can help.
        reasons: why conditions do not hold, of those that can say it.
    """

    checks: Mapping[str, bool]
    alive: bool = True
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def ready(self) -> bool:
        return all(self.checks.values())


def health_router(readiness: Callable[[], Readiness], registry: CollectorRegistry) -> APIRouter:
    router = APIRouter(tags=["operations"])

    @router.get("/healthz", responses={503: {"model": Liveness, "description": "Only a restart helps"}})
    async def healthz(response: Response) -> Liveness:
        """Whether the process works: 200, or 503 if it has to be restarted."""
        alive = readiness().alive
        response.status_code = 200 if alive else 503
        return Liveness(status="ok" if alive else "dead")

    @router.get("/readyz", responses={503: {"model": ReadinessReport, "description": "Not ready"}})
    async def readyz(response: Response) -> ReadinessReport:
        """Whether requests are accepted: 200 or 503, with the checks."""
        state = readiness()
        response.status_code = 200 if state.ready else 503
        status: Literal["ready", "not_ready"] = "ready" if state.ready else "not_ready"
        return ReadinessReport(status=status, checks=dict(state.checks), reasons=dict(state.reasons) or None)

    @router.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    def metrics() -> Response:
        """Prometheus text."""
        return Response(generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    # As GET: the server leaves the body out. Not in the description: it would say each route twice.
    for path, endpoint in (("/healthz", healthz), ("/readyz", readyz), ("/metrics", metrics)):
        router.add_api_route(path, endpoint, methods=["HEAD"], include_in_schema=False)
    return router
