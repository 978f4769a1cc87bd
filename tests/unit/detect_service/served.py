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
from ttmark.detect_service.backend import DetectionBackend
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.fair_work.fair_queue import WorkLimits
from ttmark.detect_service.features.cases.service import cases
from ttmark.detect_service.features.console import service as console
from ttmark.detect_service.features.files.service import files
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.detect_service.features.jobs.service import background_jobs
from ttmark.detect_service.features.manifests.manifest_examiner import ManifestExaminer
from ttmark.detect_service.features.manifests.service import manifests
from ttmark.detect_service.features.paper import service as paper
from ttmark.detect_service.features.public.service import public_tier
from ttmark.detect_service.features.spent.spending import Spending
from ttmark.detect_service.features.spent.spent_question import stage_of as counting
from ttmark.detect_service.stage import Stage
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.auth import Authenticate
from ttmark.shared.http.health import Readiness

_PARTS = (
    *("allowance", "ledger", "budget", "work", "examiner", "label", "reader", "case_key"),
    *("workers", "jobs", "public", "sign_in", "ready"),
)


def detection_app(backend: DetectionBackend, options: AppOptions, **parts: Any) -> FastAPI:
    """The application over `backend`, with those of `_PARTS` that a test has of its own."""
    given = {name: parts.pop(name, None) for name in _PARTS}
    assert not parts, f"no such parts: {', '.join(parts)}"
    allowance, ready = given["allowance"], given["ready"]
    optional = {
        "sign_in": lambda sign_in: Feature(provides=[sign_in]),
        "reader": lambda reader: Feature(stage=Stage("reader", reader=reader)),
        "ledger": lambda ledger: Feature(stage=counting(Spending(ledger, allowance.refused))),
        "jobs": background_jobs,
        "public": public_tier,
    }
    return create_detection_app(
        means_of(backend),
        options,
        readiness=lambda: Readiness(ready() if ready else {}),
        terms=Terms(allowance, given["budget"], given["work"] or WorkLimits()),
        features=[
            cases(given["case_key"]),
            files(given["workers"] or ExtractionWorkers()),
            manifests(given["examiner"] or ManifestExaminer(None), given["label"]),
            console.FEATURE,
            paper.FEATURE,
            *(made(given[name]) for name, made in optional.items() if given[name] is not None),
        ],
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
