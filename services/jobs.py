"""Composition root of detection jobs."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from ttmark.detect_service.jobs.job_store import JobStore
from ttmark.detect_service.jobs.jobs import Jobs
from ttmark.services.key_access import KeyAccess
from ttmark.services.runtime import no_start_after
from ttmark.services.settings_jobs import JobSettings
from ttmark.services.settings_keys import KeyStoreSettings


def open_job_store(url: str, *, lease_seconds: float) -> JobStore:
    """Jobs beside the key store that a URL names: in the same Redis, or in `jobs.db` beside the file.

    Nothing is connected to before the first call.

    Raises:
        ValueError: the URL names no store.
    """
    parts = urlsplit(url)
    if parts.scheme.partition("+")[0] in ("redis", "rediss"):
        from ttmark.detect_service.jobs.redis_jobs import RedisJobs
        from ttmark.shared.vault.redis_address import RedisAddress
        from ttmark.shared.vault.redis_client import RedisClient

        return RedisJobs(RedisClient(RedisAddress.parse(url)), lease_seconds=lease_seconds)
    if parts.scheme == "sqlite" and len(parts.path) > 1:
        from ttmark.detect_service.jobs.sqlite_jobs import SqliteJobs

        path = Path(unquote(parts.path[1:])).with_name("jobs.db")
        return SqliteJobs(path, lease_seconds=lease_seconds)
    raise ValueError("jobs are kept beside the key store, whose URL names none")


def open_jobs(settings: JobSettings, access: KeyAccess) -> Jobs:
    """Jobs beside the key store, with the keys and tokens of the service.

    Raises:
        StartupError: the key store's URL is not usable, or webhooks are allowed and have no secret.
    """
    with no_start_after(ValueError):
        store = open_job_store(KeyStoreSettings().url(), lease_seconds=settings.job_lease_seconds)
    return Jobs(store, access.kek, access.tokens.current, settings.job_limits(), settings.open_webhooks())
