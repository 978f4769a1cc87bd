"""Cases, jobs and the moderators' queue, which the detection service keeps beside its keys."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from ttmark.detect_service.cases.case_service import KeptCases
from ttmark.detect_service.cases.case_store import CaseRoom, CaseStore, RedisCases, SqliteCases
from ttmark.detect_service.jobs.redis_jobs import RedisJobs
from ttmark.detect_service.jobs.sealed_jobs import Jobs, JobStore
from ttmark.detect_service.jobs.sqlite_jobs import SqliteJobs
from ttmark.detect_service.queue.queue_service import KeptQueue
from ttmark.detect_service.queue.queue_store import QueueStore, RedisQueue, SqliteQueue
from ttmark.services.key_access import KeyAccess
from ttmark.services.settings.cases_and_jobs import CaseSettings, JobSettings, QueueSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.services.startup import StartupError
from ttmark.shared.vault.redis_client import RedisClient
from ttmark.shared.vault.redis_connections import RedisAddress
from ttmark.shared.vault.store import sqlite_path

Store = TypeVar("Store")


def _beside(
    url: str, file: str, of_file: Callable[[Path], Store], of_redis: Callable[[RedisClient], Store]
) -> Store:
    """In the Redis of the key store that a URL names, or in `file` in the folder of the store's file.

    Nothing is connected to before the first call.
    """
    path = sqlite_path(url)
    return of_redis(RedisClient(RedisAddress.parse(url))) if path is None else of_file(path.with_name(file))


def open_case_store(url: str) -> CaseStore:
    """Cases beside the key store that a URL names; see `_beside`."""
    on_disk: Callable[[Path], CaseStore] = SqliteCases
    return _beside(url, "cases.db", on_disk, RedisCases)


def open_job_store(url: str, *, lease_seconds: float) -> JobStore:
    """Jobs beside the key store that a URL names; see `_beside`."""
    on_disk: Callable[[Path], JobStore] = partial(SqliteJobs, lease_seconds=lease_seconds)
    return _beside(url, "jobs.db", on_disk, partial(RedisJobs, lease_seconds=lease_seconds))


def open_queue_store(url: str) -> QueueStore:
    """The queue beside the key store that a URL names; see `_beside`."""
    on_disk: Callable[[Path], QueueStore] = SqliteQueue
    return _beside(url, "queue.db", on_disk, RedisQueue)


def open_kept_cases(settings: CaseSettings, access: KeyAccess) -> KeptCases | None:
    """Where cases are kept, if they are to be.

    Raises:
        StartupError: nothing signs cases.
    """
    if not settings.cases_keep_days:
        return None
    if settings.case_key_file is None:
        raise StartupError("TTMARK_CASES_KEEP_DAYS needs TTMARK_CASE_KEY_FILE: only signed cases are kept")
    store = open_case_store(KeyStoreSettings().url())
    room = CaseRoom(settings.cases_tenant_bytes, settings.cases_bytes)
    return KeptCases(store, access.kek, settings.cases_keep_days, room, settings.case_bytes)


def open_jobs(settings: JobSettings, access: KeyAccess) -> Jobs:
    """Jobs beside the key store, with the keys and tokens of the service.

    Raises:
        StartupError: webhooks are allowed and have no secret.
    """
    store = open_job_store(KeyStoreSettings().url(), lease_seconds=settings.job_lease_seconds)
    return Jobs(store, access.kek, access.tokens.current, settings.job_limits(), settings.open_webhooks())


def open_queue(settings: QueueSettings, access: KeyAccess) -> KeptQueue | None:
    """The queue, if there is to be one."""
    if not settings.queue_keep_days:
        return None
    store = open_queue_store(KeyStoreSettings().url())
    secret = access.kek.derive(b"ttmark queue")
    return KeptQueue(store, access.kek, secret, settings.queue_keep_days, settings.queue_items)
