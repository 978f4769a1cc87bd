"""What a deployment adds to the asking: each feature is a function from the application's parts to a part."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fastapi import APIRouter

from ttmark.detect_service.api.admission import Admission
from ttmark.detect_service.api.metrics import DetectionMetrics
from ttmark.detect_service.api.routes import Answering
from ttmark.detect_service.ask import Means
from ttmark.detect_service.features.console import SignIn, console_router
from ttmark.detect_service.features.files import ExtractionWorkers
from ttmark.detect_service.features.files.checks.routes import CHECKS_PATH, checks_router
from ttmark.detect_service.features.files.routes import (
    EXTRACT_PATH,
    ExtractionMetrics,
    FileReader,
    extraction_router,
)
from ttmark.detect_service.features.jobs.background import JobCalls, JobExpiry, JobWorker
from ttmark.detect_service.features.jobs.job_service import JobMetrics, JobService
from ttmark.detect_service.features.jobs.part_work import PartWork
from ttmark.detect_service.features.jobs.routes import JOBS_PATH, job_routers
from ttmark.detect_service.features.jobs.sealed_jobs import Jobs
from ttmark.detect_service.features.public import PUBLIC_PATH, PublicTier
from ttmark.detect_service.features.public.routes import public_limits, public_routers
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.health import Readiness
from ttmark.shared.http.request_body import HttpLimits


@dataclass(frozen=True, slots=True)
class Application:
    means: Means
    admission: Admission
    answer: Answering
    metrics: DetectionMetrics
    options: AppOptions
    readiness: Callable[[], Readiness]


@dataclass(frozen=True, slots=True)
class Part:
    """What a feature adds.

    Attributes:
        background: runs while the application serves.
        limits: of bodies, by path, where they are others.
    """

    routes: Sequence[APIRouter]
    background: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()
    limits: Mapping[str, HttpLimits] = field(default_factory=dict)


Feature = Callable[[Application], Part]


def files(workers: ExtractionWorkers) -> Feature:
    """Files are read by `workers`, which whoever makes them closes, and asked about."""

    def added(app: Application) -> Part:
        reader = FileReader(workers, ExtractionMetrics(app.options.registry))
        forms = replace(app.options.limits, takes_forms=True)
        routes = [
            extraction_router(reader, app.admission.run_long),
            checks_router(reader, app.answer, app.means.backend, app.admission.run_long),
        ]
        return Part(routes, limits=dict.fromkeys((EXTRACT_PATH, CHECKS_PATH), forms))

    return added


def console(sign_in: SignIn | None = None) -> Feature:
    """The moderation page, which signs people in at a provider; None: it takes tokens alone."""
    return lambda _: Part([console_router(sign_in)])


def background_jobs(jobs: Jobs) -> Feature:
    """Jobs are kept in their store, and worked on while the application serves."""

    def added(app: Application) -> Part:
        metrics, options = JobMetrics(app.options.registry), app.options
        service = JobService(jobs, app.means.backend, metrics, options.audit, app.admission.allowance)
        background = [JobExpiry(jobs, metrics).run, JobCalls(jobs, metrics).run]
        if jobs.limits.workers:
            work = PartWork(jobs, app.means, app.admission.queue, metrics, app.metrics, options.audit)
            ready = app.readiness
            background.append(JobWorker(jobs, work, metrics, lambda: all(ready().checks.values())).run)
        limits = replace(
            options.limits,
            max_body_bytes=jobs.limits.body_bytes,
            max_json_containers=2 * jobs.limits.documents + 100,  # each document is one, and may hold a list
        )
        routes = job_routers(service, app.admission.run_long, app.admission.shorten)
        return Part(routes, background, {JOBS_PATH: limits})

    return added


def public_tier(tier: PublicTier) -> Feature:
    def added(app: Application) -> Part:
        routes = public_routers(tier, app.means, app.metrics, app.options.audit, app.admission)
        return Part(routes, limits={PUBLIC_PATH: public_limits(tier, app.options.limits)})

    return added
