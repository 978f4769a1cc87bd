"""The detection application with parts of a test's own, in process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from ttmark.detect_service.api.admission import Terms
from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.api.features import Feature
from ttmark.detect_service.ask import Means
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.fair_work.fair_queue import WorkLimits
from ttmark.detect_service.features.cases import service as cases
from ttmark.detect_service.features.console import service as console
from ttmark.detect_service.features.files.service import files
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.jobs.service import background_jobs
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.paper import service as paper
from ttmark.detect_service.features.public.service import public_tier
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.auth import Authenticate
from ttmark.shared.http.health import Readiness


def detection_app(backend: DetectionBackend, options: AppOptions, **parts: Any) -> FastAPI:
    """The application over `backend`, with those `parts` that a test has of its own, by these names:
    allowance, budget, work; examiner, reader, case_key; workers, jobs, public, sign_in; ready."""
    given = parts.pop
    examiner = given("examiner", None) or ManifestExaminer(None)
    means = Means(backend, examiner, given("reader", None), case_key=given("case_key", None))
    terms = Terms(given("allowance", None), given("budget", None), given("work", None) or WorkLimits())
    features = [
        cases.FEATURE,
        files(given("workers", None) or ExtractionWorkers()),
        console.FEATURE,
        paper.FEATURE,
    ]
    jobs, public, ready, sign_in = (given(name, None) for name in ("jobs", "public", "ready", "sign_in"))
    features += [Feature(provides=[sign_in])] * (sign_in is not None)
    features += [] if jobs is None else [background_jobs(jobs)]
    features += [] if public is None else [public_tier(public)]
    assert not parts, f"no such parts: {', '.join(parts)}"
    return create_detection_app(
        means, options, readiness=lambda: Readiness(ready() if ready else {}), terms=terms, features=features
    )


@asynccontextmanager
async def served(
    backend: DetectionBackend,
    authenticate: Authenticate,
    *,
    options: dict[str, Any] | None = None,
    raises: bool = True,
    headers: dict[str, str] | None = None,
    **parts: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of it; `options` are those of any HTTP application, `raises` is off to see a 500."""
    given = {"registry": CollectorRegistry()} | (options or {})
    app = detection_app(backend, AppOptions(authenticate=authenticate, **given), **parts)
    transport = httpx.ASGITransport(app, raise_app_exceptions=raises)
    async with httpx.AsyncClient(transport=transport, base_url="http://detect", headers=headers) as client:
        yield client
