"""Composition root of the moderators' queue."""

from pathlib import Path

from ttmark.detect_service.queue.desk import KeptQueue
from ttmark.detect_service.queue.queue_store import QueueStore
from ttmark.services.key_access import KeyAccess
from ttmark.services.place_beside import place_beside
from ttmark.services.runtime import no_start_after
from ttmark.services.settings.cases_and_jobs import QueueSettings
from ttmark.services.settings.store import KeyStoreSettings


def open_queue_store(url: str) -> QueueStore:
    """The queue beside the key store that a URL names; nothing is connected to before the first call.

    Raises:
        ValueError: the URL names no store.
    """
    place = place_beside(url, "queue.db")
    if isinstance(place, Path):
        from ttmark.detect_service.queue.sqlite_queue import SqliteQueue

        return SqliteQueue(place)
    from ttmark.detect_service.queue.redis_queue import RedisQueue

    return RedisQueue(place)


def open_queue(settings: QueueSettings, access: KeyAccess) -> KeptQueue | None:
    """The queue, if there is to be one.

    Raises:
        StartupError: the key store's URL is not usable.
    """
    if not settings.queue_keep_days:
        return None
    with no_start_after(ValueError):
        store = open_queue_store(KeyStoreSettings().url())
    secret = access.kek.derive(b"ttmark queue")
    return KeptQueue(store, access.kek, secret, settings.queue_keep_days, settings.queue_items)
