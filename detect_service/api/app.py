"""The detection service as an ASGI application."""

from collections.abc import Callable
from dataclasses import replace

from fastapi import FastAPI

from ttmark.detect_service.api.cases import cases_router, public_key_router
from ttmark.detect_service.api.detection_metrics import MODES, DetectionMetrics
from ttmark.detect_service.api.extract import extraction_router
from ttmark.detect_service.api.extraction_metrics import ExtractionMetrics
from ttmark.detect_service.api.keys import keys_router
from ttmark.detect_service.api.problems import describe_problems
from ttmark.detect_service.api.routes import detection_router
from ttmark.detect_service.api.work_desk import WorkDesk
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.console import console_router
from ttmark.detect_service.extraction import ExtractionWorkers
from ttmark.detect_service.fair_work.work_limits import WorkLimits
from ttmark.detect_service.fair_work.work_metrics import WorkMetrics
from ttmark.shared.cases.case_key import CaseKey
from ttmark.shared.http.app import AppOptions, create_app
from ttmark.shared.http.health import Readiness
from ttmark.shared.limits.allowances import DocumentAllowance
from ttmark.shared.limits.work_budget import WorkBudget


def create_detection_app(
    backend: DetectionBackend,
    options: AppOptions,
    *,
    readiness: Callable[[], Readiness],
    allowance: DocumentAllowance | None = None,
    workers: ExtractionWorkers | None = None,
    work: WorkLimits | None = None,
    budget: WorkBudget | None = None,
    case_key: CaseKey | None = None,
) -> FastAPI:
    """Routes, console, errors, health and metrics of the detection service over `backend`.

    `readiness` is asked on each /readyz, `allowance` for the documents of each request and `budget`
    for its work; left out: no limit.
    `workers` read files; whoever makes them closes them. Left out: with the usual limits.
    `case_key` signs cases; left out: there are none.
    """
    desk = WorkDesk(backend, work or WorkLimits(), WorkMetrics(options.registry, MODES), budget)
    options = replace(options, run_long=desk.run_long)
    app = create_app(options, title="TTMark detection", error_style="problem", readiness=readiness)
    metrics = DetectionMetrics(options.registry)
    app.include_router(detection_router(backend, metrics, allowance, options.audit, desk, case_key))
    app.include_router(cases_router(case_key, desk.run_long))
    app.include_router(public_key_router(case_key))
    app.include_router(keys_router(backend, options.limits))
    app.include_router(
        extraction_router(workers or ExtractionWorkers(), ExtractionMetrics(options.registry), desk.run_long)
    )
    app.include_router(console_router())
    describe_problems(app)
    return app
