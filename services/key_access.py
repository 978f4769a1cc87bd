"""Keys and access tokens of a running service: opened from settings, kept fresh while it runs."""

from types import TracebackType
from typing import Self

from services.runtime import StartupError
from services.settings import ServiceSettings
from services.settings_keys import KeyStoreSettings
from shared.keys import KeyCache, KeyRing, TokenRegistry
from shared.keys.store import RecordStore


class KeyAccess:
    """The key cache and the token registry over one store; runs as an async context."""

    def __init__(self, store: RecordStore, cache: KeyCache, tokens: TokenRegistry) -> None:
        self._store = store
        self.cache = cache
        self.tokens = tokens

    @classmethod
    def open(cls, settings: ServiceSettings, *, max_age_seconds: float) -> Self:
        """Connects to nothing yet: a service whose store is away starts, and is not ready.

        Raises:
            StartupError: the store's URL or the key-encryption key is not usable.
        """
        stored = KeyStoreSettings()
        try:
            store, kek = stored.open_store(), stored.load_kek()
        except (ValueError, OSError) as error:
            raise StartupError(str(error)) from error
        cache = KeyCache(
            KeyRing(store, kek), refresh_seconds=settings.key_refresh_seconds, max_age_seconds=max_age_seconds
        )
        return cls(store, cache, TokenRegistry(store, kek, outage_seconds=max_age_seconds))

    async def __aenter__(self) -> Self:
        await self.cache.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.cache.stop()
        await self._store.close()
