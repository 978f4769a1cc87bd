"""Opens the feature: files are read, and asked about."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from ttmark.detect_service.api.features import Application, DetectionFeature, Part
from ttmark.detect_service.features.files.check_routes import CHECKS_PATH, checks_router
from ttmark.detect_service.features.files.routes import (
    EXTRACT_PATH,
    ExtractionMetrics,
    FileReader,
    extraction_router,
)
from ttmark.detect_service.features.files.settings import ExtractionSettings
from ttmark.detect_service.features.files.text.extraction import ExtractionLimits
from ttmark.detect_service.features.files.workers.worker_pool import ExtractionWorkers
from ttmark.services.composition.opening import Opening


def opened(_: Opening) -> DetectionFeature:
    return files(ExtractionWorkers(ExtractionLimits(workers=ExtractionSettings().extract_workers)))


def files(workers: ExtractionWorkers) -> DetectionFeature:
    """Files are read by `workers`, and asked about."""

    def part(app: Application) -> Part:
        reader = FileReader(workers, ExtractionMetrics(app.options.registry))
        forms = replace(app.options.limits, takes_forms=True)
        routes = [
            extraction_router(reader, app.admission.run_long),
            checks_router(reader, app.answer, app.means.backend, app.admission.run_long),
        ]
        return Part(routes, limits=dict.fromkeys((EXTRACT_PATH, CHECKS_PATH), forms))

    return DetectionFeature(part, running=[_warm(workers)], provides=[workers])


@asynccontextmanager
async def _warm(workers: ExtractionWorkers) -> AsyncIterator[None]:
    async with workers:
        await workers.warm()
        yield
