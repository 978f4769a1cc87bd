"""Keys, access tokens and counters of a running service: opened from settings, kept fresh while it runs."""

import os
import socket
from types import TracebackType
from typing import Self

from services.runtime import StartupError
from services.settings import ServiceSettings
from services.settings_keys import KeyStoreSettings
from shared.keys import (
    Counters,
    KeyCache,
    KeyEncryptionKey,
    KeyRing,
    RecordStore,
    ReplicaReporter,
    TokenRegistry,
    log_audit,
)


class KeyAccess:
    """Key cache and token registry over one store, and counters beside it; runs as an async context."""

    def __init__(
        self,
        store: RecordStore,
        counters: Counters,
        kek: KeyEncryptionKey,
        cache: KeyCache,
        tokens: TokenRegistry,
    ) -> None:
        self._store = store
        self.counters = counters
        self.kek = kek
        self.cache = cache
        self.tokens = tokens

    @classmethod
    def open(cls, settings: ServiceSettings, *, service: str, port: int, max_age_seconds: float) -> Self:
        """Connects to nothing yet: a service whose store is away starts, and is not ready.

        Args:
            service, port: make the name under which this replica reports what it knows.
            max_age_seconds: how long keys and tokens are used while the store is away.

        Raises:
            StartupError: the store's URL, the key-encryption key or the ledger file is not usable.
        """
        stored = KeyStoreSettings()
        try:
            store, kek, ledger = stored.open_store(), stored.load_kek(), stored.open_ledger()
            counters = stored.open_counters()
        except (ValueError, OSError) as error:
            raise StartupError(str(error)) from error
        reporter = ReplicaReporter(
            store,
            settings.replica_id or _replica_id(service, port),
            max_age_seconds=max_age_seconds,
            every_seconds=settings.key_refresh_seconds,
        )
        cache = KeyCache(
            KeyRing(store, kek, ledger=ledger),
            refresh_seconds=settings.key_refresh_seconds,
            max_age_seconds=max_age_seconds,
            reporter=reporter,
            audit=log_audit,
        )
        tokens = TokenRegistry(
            store,
            kek,
            fresh_seconds=settings.token_refresh_seconds,
            outage_seconds=max_age_seconds,
            ledger=ledger,
            audit=log_audit,
        )
        return cls(store, counters, kek, cache, tokens)

    async def __aenter__(self) -> Self:
        await self.cache.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.cache.stop()
        await self.counters.close()
        await self._store.close()


def _replica_id(service: str, port: int) -> str:
    # Without a fixed port two replicas on a machine would take each other's name.
    return f"{service}@{socket.gethostname()}:{port or f'pid{os.getpid()}'}"
