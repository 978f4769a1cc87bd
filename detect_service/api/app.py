"""The detection service as an ASGI application."""

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

from fastapi import FastAPI

from ttmark.detect_service.api.admission import Admission
from ttmark.detect_service.api.body_route import body_scopes
from ttmark.detect_service.api.cases import case_page_router, public_key_router
from ttmark.detect_service.api.extract import ExtractionMetrics, extraction_router
from ttmark.detect_service.api.jobs import JOBS_PATH, job_routers
from ttmark.detect_service.api.metrics_and_audit import DetectionMetrics, WorkMetrics
from ttmark.detect_service.api.problems import describe_problems
from ttmark.detect_service.api.public import public_limits, public_routers
from ttmark.detect_service.api.routes import answers, detection_router, keys_router
from ttmark.detect_service.ask import Means
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.console import SignIn, console_router
from ttmark.detect_service.extraction import ExtractionWorkers
from ttmark.detect_service.fair_work.fair_queue import WorkLimits
from ttmark.detect_service.jobs.background import JobCalls, JobExpiry, JobWorker
from ttmark.detect_service.jobs.job_metrics import JobMetrics
from ttmark.detect_service.jobs.job_service import JobService
from ttmark.detect_service.jobs.part_work import PartWork
from ttmark.detect_service.jobs.sealed_jobs import Jobs
from ttmark.detect_service.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.model_reader.reads_along import ReadsAlong
from ttmark.detect_service.paper.routes import paper_router
from ttmark.detect_service.public import PUBLIC_PATH, PublicTier
from ttmark.detect_service.spending import spending_of
from ttmark.shared.cases.signed_file import CaseKey
from ttmark.shared.http.app import AppOptions, beside, create_app
from ttmark.shared.http.health import Readiness
from ttmark.shared.http.request_body import HttpLimits
from ttmark.shared.limits.allowances import DocumentAllowance, WorkBudget


def create_detection_app(
    backend: DetectionBackend,
    options: AppOptions,
    *,
    readiness: Callable[[], Readiness],
    allowance: DocumentAllowance | None = None,
    workers: ExtractionWorkers | None = None,
    work: WorkLimits | None = None,
    budget: WorkBudget | None = None,
    jobs: Jobs | None = None,
    case_key: CaseKey | None = None,
    examiner: ManifestExaminer | None = None,
    public: PublicTier | None = None,
    reader: ReadsAlong | None = None,
    sign_in: SignIn | None = None,
) -> FastAPI:
    """Routes, console, errors, health and metrics of the detection service over `backend`.

    `readiness` is asked on each /readyz, `allowance` for the documents of each request and `budget`
    for its work; left out: no limit.
    `jobs` are kept in its store and worked on while the application serves; None: there are no such routes.
    `workers` read files; whoever makes them closes them. Left out: with the usual limits.
    `case_key` signs cases; left out: there are none.
    `examiner` verifies manifests; left out: they are set apart and not examined.
    `reader` reads texts along; left out: none does.
    `public` is what everybody may ask; left out: nothing.
    `sign_in` says at which provider the console signs people in; left out: it takes tokens alone.
    """
    admission = Admission(backend, work or WorkLimits(), WorkMetrics(options.registry), budget, allowance)
    metrics = DetectionMetrics(options.registry)
    reader = reader or ReadsAlong(None, options.registry)
    means = Means(
        backend,
        examiner or ManifestExaminer(None),
        reader if reader.exists else None,
        spending_of(allowance, backend),
        case_key,
    )
    answer = answers(means, metrics, options.audit, admission)
    options = replace(options, run_long=admission.run_long)
    background: list[Callable[[], Coroutine[Any, Any, None]]] = []
    of_path: dict[str, HttpLimits] = {}
    routes = [
        detection_router(answer, admission),
        paper_router(answer, admission),
        case_page_router(case_key, admission.run_long),
        public_key_router(case_key),
        keys_router(backend, options.limits),
        extraction_router(
            workers or ExtractionWorkers(), ExtractionMetrics(options.registry), admission.run_long
        ),
        console_router(sign_in),
    ]
    if jobs is not None:
        job_metrics = JobMetrics(options.registry)
        job_service = JobService(jobs, backend, job_metrics, options.audit, allowance)
        routes += job_routers(job_service, admission.run_long, admission.shorten)
        background += [JobExpiry(jobs, job_metrics).run, JobCalls(jobs, job_metrics).run]
        if jobs.limits.workers:
            part_work = PartWork(jobs, means, admission.queue, job_metrics, metrics, options.audit)
            worker = JobWorker(jobs, part_work, job_metrics, ready=lambda: all(readiness().checks.values()))
            background.append(worker.run)
        of_path[JOBS_PATH] = replace(
            options.limits,
            max_body_bytes=jobs.limits.body_bytes,
            max_json_containers=2 * jobs.limits.documents + 100,  # each document is one, and may hold a list
        )
    if public is not None:
        routes += public_routers(public, means, metrics, options.audit, admission)
        of_path[PUBLIC_PATH] = public_limits(public, options.limits)
    options = replace(
        options,
        limits=replace(options.limits, of_path=of_path),
        lifespan=beside(options.lifespan, background),
        body_scopes=body_scopes(routes),
    )
    app = create_app(options, title="TTMark detection", error_style="problem", readiness=readiness)
    for router in routes:
        app.include_router(router)
    describe_problems(app)
    return app
