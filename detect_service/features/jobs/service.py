"""Opens the feature: thousands of documents, answered in the background."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from ttmark.detect_service.api.features import Application, DetectionFeature, Part
from ttmark.detect_service.features.jobs.background import JobCalls, JobExpiry, JobWorker
from ttmark.detect_service.features.jobs.job_service import JobMetrics, JobService
from ttmark.detect_service.features.jobs.job_store import LEASE_SECONDS
from ttmark.detect_service.features.jobs.part_work import PartWork
from ttmark.detect_service.features.jobs.redis_jobs import RedisJobs
from ttmark.detect_service.features.jobs.routes import JOBS_PATH, job_routers
from ttmark.detect_service.features.jobs.sealed_jobs import Jobs, JobStore
from ttmark.detect_service.features.jobs.settings import JobSettings
from ttmark.detect_service.features.jobs.sqlite_jobs import SqliteJobs
from ttmark.services.composition.key_access import KeyAccess
from ttmark.services.composition.opening import Opening
from ttmark.services.settings.store import KeyStoreSettings, sqlite_path
from ttmark.shared.vault.stores.redis_client import RedisClient
from ttmark.shared.vault.stores.redis_connections import RedisAddress


def opened(opening: Opening) -> DetectionFeature:
    return background_jobs(open_jobs(opening.access))


def background_jobs(jobs: Jobs) -> DetectionFeature:
    """Jobs are kept in their store, and worked on while the application serves; at the end it is closed."""

    def part(app: Application) -> Part:
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

    return DetectionFeature(part, running=[_closed(jobs.store)])


@asynccontextmanager
async def _closed(store: JobStore) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await store.close()


def open_job_store(url: str, *, lease_seconds: float = LEASE_SECONDS) -> JobStore:
    """Jobs in the Redis of the key store that a URL names, or in a file in the folder of the store's file.

    Nothing is connected to before the first call.
    """
    path = sqlite_path(url)
    if path is None:
        return RedisJobs(RedisClient(RedisAddress.parse(url)), lease_seconds=lease_seconds)
    return SqliteJobs(path.with_name("jobs.db"), lease_seconds=lease_seconds)


def open_jobs(access: KeyAccess) -> Jobs:
    """Jobs beside the key store. Raises StartupError: webhooks are allowed and have no secret."""
    settings, store = JobSettings(), open_job_store(KeyStoreSettings().url())
    return Jobs(store, access.kek, access.tokens.current, settings.job_limits(), settings.open_webhooks())
