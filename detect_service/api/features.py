"""What a deployment adds to the asking: features.

Each is a folder of `detect_service/features`, which nothing else imports. Its module `service` has a function
`opened`, which makes a `DetectionFeature` of what the service is started with; None: it is switched off.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from fastapi import APIRouter

from ttmark.detect_service.api.admission import Admission
from ttmark.detect_service.api.metrics import DetectionMetrics
from ttmark.detect_service.api.routes import Answering
from ttmark.detect_service.ask import Means
from ttmark.detect_service.stage import VerdictStage
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.auth import Authenticate, Guests
from ttmark.shared.http.health import Readiness
from ttmark.shared.http.request_body import HttpLimits

T = TypeVar("T")


class Provided(list[object]):
    """What features have for each other, each thing found by its class."""

    def get(self, kind: type[T]) -> T | None:
        """The first of a class; None: no feature has one."""
        return next((thing for thing in self if isinstance(thing, kind)), None)


@dataclass(frozen=True, slots=True)
class Application:
    means: Means
    admission: Admission
    answer: Answering
    metrics: DetectionMetrics
    options: AppOptions
    readiness: Callable[[], Readiness]
    provided: Provided


@dataclass(frozen=True, slots=True)
class Part:
    """What a feature adds; `background` runs while the application serves, `limits` of bodies are by path."""

    routes: Sequence[APIRouter] = ()
    background: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
    limits: Mapping[str, HttpLimits] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DetectionFeature:
    """What a folder adds; what is left out adds nothing.

    Attributes:
        part: its part of the application, made when all features are open.
        running: held open while the application serves.
        authenticate: from the way that callers are known by to another, which falls back on it.
        guests: who may ask without a token.
    """

    part: Callable[[Application], Part] = lambda _: Part()
    stage: VerdictStage | None = None
    running: Sequence[AbstractAsyncContextManager[Any]] = ()
    authenticate: Callable[[Authenticate], Authenticate] | None = None
    guests: Guests | None = None
    provides: Sequence[object] = ()
