"""What an optional feature adds to the generation service: `opened` in its `service.py` says it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel

from ttmark.gen_service.api.account import Accounting
from ttmark.gen_service.api.plan.served_model import Generator
from ttmark.gen_service.api.plan.stages import Hook
from ttmark.gen_service.engine.loop.engine_metrics import EngineMetrics
from ttmark.shared.access.scopes import Scope

FEATURES = "ttmark.gen_service.features"


class RunningEngine(Generator, Protocol):
    """An engine with a model in it; it takes requests between `start` and `stop`."""

    def start(self) -> None: ...

    def stop(self, drain_seconds: float) -> None: ...

    def record_in(self, metrics: EngineMetrics) -> None: ...


LoadEngine = Callable[[str, Path], RunningEngine]
"""From a model's name and folder to its engine."""


@dataclass(frozen=True, slots=True)
class GenerationFeature:
    """What a feature adds.

    Attributes:
        routes: a router, each of whose routes is of the class that holds bodies to their schemas.
        body_scopes: what callers need before their body is read, by path.
        events: what the events of its streams hold.
        engines: by their names in `TTMARK_ENGINE`.
        hooks: what it does to requests on their way.
    """

    routes: Callable[[Accounting, type[APIRoute]], APIRouter] | None = None
    body_scopes: Mapping[str, Scope] = field(default_factory=dict)
    events: tuple[type[BaseModel], ...] = ()
    engines: Mapping[str, LoadEngine] = field(default_factory=dict)
    hooks: Sequence[Hook] = ()
