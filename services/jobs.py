"""Composition root of detection jobs."""

from pathlib import Path

from ttmark.detect_service.jobs.job_store import JobStore
from ttmark.detect_service.jobs.jobs import Jobs
from ttmark.services.key_access import KeyAccess
from ttmark.services.place_beside import place_beside
from ttmark.services.runtime import no_start_after
from ttmark.services.settings.cases_and_jobs import JobSettings
from ttmark.services.settings.store import KeyStoreSettings


def open_job_store(url: str, *, lease_seconds: float) -> JobStore:
    """Jobs beside the key store that a URL names; nothing is connected to before the first call.

    Raises:
        ValueError: the URL names no store.
    """
    place = place_beside(url, "jobs.db")
    if isinstance(place, Path):
        from ttmark.detect_service.jobs.sqlite_jobs import SqliteJobs

        return SqliteJobs(place, lease_seconds=lease_seconds)
    from ttmark.detect_service.jobs.redis_jobs import RedisJobs

    return RedisJobs(place, lease_seconds=lease_seconds)


def open_jobs(settings: JobSettings, access: KeyAccess) -> Jobs:
    """Jobs beside the key store, with the keys and tokens of the service.

    Raises:
        StartupError: the key store's URL is not usable, or webhooks are allowed and have no secret.
    """
    with no_start_after(ValueError):
        store = open_job_store(KeyStoreSettings().url(), lease_seconds=settings.job_lease_seconds)
    return Jobs(store, access.kek, access.tokens.current, settings.job_limits(), settings.open_webhooks())
