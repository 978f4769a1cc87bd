"""Jobs, which the detection service keeps beside its keys."""

from ttmark.detect_service.jobs.job_store import LEASE_SECONDS
from ttmark.detect_service.jobs.redis_jobs import RedisJobs
from ttmark.detect_service.jobs.sealed_jobs import Jobs, JobStore
from ttmark.detect_service.jobs.sqlite_jobs import SqliteJobs
from ttmark.services.key_access import KeyAccess
from ttmark.services.settings.cases_and_jobs import JobSettings
from ttmark.services.settings.store import KeyStoreSettings, sqlite_path
from ttmark.shared.vault.redis_client import RedisClient
from ttmark.shared.vault.redis_connections import RedisAddress


def open_job_store(url: str, *, lease_seconds: float = LEASE_SECONDS) -> JobStore:
    """Jobs in the Redis of the key store that a URL names, or in a file in the folder of the store's file.

    Nothing is connected to before the first call.
    """
    path = sqlite_path(url)
    if path is None:
        return RedisJobs(RedisClient(RedisAddress.parse(url)), lease_seconds=lease_seconds)
    return SqliteJobs(path.with_name("jobs.db"), lease_seconds=lease_seconds)


def open_jobs(settings: JobSettings, access: KeyAccess) -> Jobs:
    """Jobs beside the key store, with the keys and tokens of the service.

    Raises:
        StartupError: webhooks are allowed and have no secret.
    """
    store = open_job_store(KeyStoreSettings().url())
    return Jobs(store, access.kek, access.tokens.current, settings.job_limits(), settings.open_webhooks())
