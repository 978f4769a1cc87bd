"""The detection application with parts of a test's own, in process."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import httpx
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from ttmark.detect_service.api.admission import Terms
from ttmark.detect_service.api.app import create_detection_app
from ttmark.detect_service.api.features import DetectionFeature
from ttmark.detect_service.composition import means_of
from ttmark.detect_service.documents.backend import DetectionBackend
from ttmark.detect_service.fair_work.fair_queue import WorkLimits
from ttmark.detect_service.stage import VerdictStage
from ttmark.shared.http.app import AppOptions
from ttmark.shared.http.auth import Authenticate
from ttmark.shared.http.health import Readiness

_PARTS = (
    *("allowance", "ledger", "budget", "work", "examiner", "label", "reader", "case_key"),
    *("workers", "jobs", "public", "sign_in", "ready"),
)


def of(feature: str, name: str, module: str = "service") -> Any:
    """What a feature's module has under a name; None where the feature was deleted."""
    folder = f"ttmark.detect_service.features.{feature}"
    return getattr(import_module(f"{folder}.{module}"), name) if find_spec(folder) else None


def workers_here() -> Any:
    """They read files in this process: none has to start for it, as it does for files that may be hostile."""
    if pool := of("files", "ExtractionWorkers", "workers.worker_pool"):
        read = of("files", "extract_text", "formats.readers_by_format")

        async def in_turn(_: object, filename: str, content: bytes, __: object) -> Any:
            return read(filename, content)

        return type("InThisProcess", (pool,), {"_in_turn": in_turn})()
    return None


def detection_app(backend: DetectionBackend, options: AppOptions, **parts: Any) -> FastAPI:
    """The application over `backend`, with those of `_PARTS` that a test has of its own."""
    given = {name: parts.pop(name, None) for name in _PARTS}
    assert not parts, f"no such parts: {', '.join(parts)}"
    features = [of("console", "FEATURE"), of("paper", "FEATURE")]
    if cases := of("cases", "cases"):
        features.append(cases(given["case_key"]))
    if files := of("files", "files"):
        features.append(files(given["workers"] or of("files", "ExtractionWorkers", "workers.worker_pool")()))
    if manifests := of("manifests", "manifests"):
        examiner = given["examiner"] or of("manifests", "ManifestExaminer", "manifest_examiner")(None)
        features.append(manifests(examiner, given["label"]))
    if sign_in := given["sign_in"]:
        features.append(DetectionFeature(provides=[sign_in]))
    if reader := given["reader"]:
        features.append(DetectionFeature(stage=VerdictStage("reader", reader=reader)))
    if ledger := given["ledger"]:
        spending = of("spent", "Spending", "spending")(ledger, given["allowance"].refused)
        features.append(DetectionFeature(stage=of("spent", "stage_of", "spent_question")(spending)))
    if jobs := given["jobs"]:
        features.append(of("jobs", "background_jobs")(jobs))
    if public := given["public"]:
        features.append(of("public", "public_tier")(public))
    ready = given["ready"]
    return create_detection_app(
        means_of(backend),
        options,
        readiness=lambda: Readiness(ready() if ready else {}),
        terms=Terms(given["allowance"], given["budget"], given["work"] or WorkLimits()),
        features=[feature for feature in features if feature is not None],
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
