"""Keys, access tokens and counters of a running service: opened from settings, kept fresh while it runs."""

import os
import socket
from collections import defaultdict
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Protocol, Self

import structlog
from prometheus_client import CollectorRegistry

from ttmark.services.settings.base import ServiceSettings
from ttmark.services.settings.store import KeyStoreSettings
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.events import Event, EventSink, log_event, to_all
from ttmark.shared.features import modules_of
from ttmark.shared.keys.held_keys import HeldKey
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.key_metrics import watch_keys, watch_ledger
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.replica_reports import ReplicaReporter
from ttmark.shared.limits.counters import Counters
from ttmark.shared.tokenization import TextTokenizer, TokenizerMissing
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.stores.store import RecordStore

# Between two readings of all keys, a few kilobytes: a rotation waits so long until all replicas know of it.
KEY_REFRESH_SECONDS = 15.0


class Listener(AbstractAsyncContextManager[Any], Protocol):
    """Hears of all events of a service, and is entered while it runs."""

    def hear(self, event: Event) -> None: ...


@dataclass(frozen=True)
class KeyAccess:
    """Key cache and token registry over one store, and counters beside it; runs as an async context.

    Attributes:
        listeners: what `in_service` opens, in the module `events` of each feature that has one.
        audit: tells the log and the listeners.
    """

    store: RecordStore
    counters: Counters
    kek: KeyEncryptionKey
    cache: KeyCache
    tokens: TokenRegistry
    ledger: Ledger
    listeners: Iterable[Listener]
    audit: EventSink
    _running: AsyncExitStack = field(default_factory=AsyncExitStack)

    @classmethod
    def open(
        cls,
        settings: ServiceSettings,
        registry: CollectorRegistry,
        *,
        service: str,
        port: int,
        max_age_seconds: float,
    ) -> Self:
        """Connects to nothing yet: a service whose store is away starts, and is not ready.

        Args:
            service, port: make the name under which this replica reports what it knows.
            max_age_seconds: how long keys and tokens are used while the store is away.

        Raises:
            StartupError: the store's URL, the key-encryption key, the ledger file or what a listener needs is
                not usable.
        """
        stored = KeyStoreSettings()
        store, kek, ledger = stored.open_store(), stored.load_kek(), stored.open_ledger(tell=_log_ledger)
        # Without a fixed port two replicas on a machine would take each other's name.
        replica_id = settings.replica_id or f"{service}@{socket.gethostname()}:{port or f'pid{os.getpid()}'}"
        features = modules_of("events", "ttmark.services.features")
        opened = [feature.in_service(replica_id, store, kek, registry) for feature in features]
        listeners: list[Listener] = [listener for listener in opened if listener is not None]
        audit = to_all(log_event, *(listener.hear for listener in listeners))
        reporter = ReplicaReporter(
            store, replica_id, max_age_seconds=max_age_seconds, every_seconds=KEY_REFRESH_SECONDS
        )
        cache = KeyCache(
            KeyRing(store, kek, ledger=ledger),
            refresh_seconds=KEY_REFRESH_SECONDS,
            max_age_seconds=max_age_seconds,
            reporter=reporter,
            audit=audit,
        )
        tokens = TokenRegistry(
            store,
            kek,
            outage_seconds=max_age_seconds,
            ledger=ledger,
            audit=audit,
        )
        watch_keys(cache, registry)
        watch_ledger(ledger, registry)
        return cls(store, stored.open_counters(), kek, cache, tokens, ledger, listeners, audit)

    async def __aenter__(self) -> Self:
        for listener in self.listeners:
            await self._running.enter_async_context(listener)
        await self.cache.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.cache.stop()
        await self._running.aclose()
        self.tokens.close()
        await self.counters.close()
        await self.store.close()


def _log_ledger(reason: str) -> None:
    structlog.stdlib.get_logger("ttmark.keys").error("ledger_not_written", reason=reason)


def warn_of_unread(
    keys: Iterable[HeldKey], fingerprints: Mapping[str, str], folders: Iterable[Path] = ()
) -> None:
    """Logs which keys in use are for a tokenizer that nothing here has, and what has the nearest one by name.

    A fingerprint is a hash: that two tokenizers are alike shows in names alone. Folders that the state folder
    keeps are called after the model and the fingerprint that its tokenizer had then.

    Args:
        fingerprints: of tokenizers, by the model or folder that has them.
        folders: with further tokenizers, looked at if a key is not for one of the first.
    """
    unread: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        if key.detectable:
            unread[key.profile.tokenizer_fingerprint].append(key.key_id)
    found = dict(fingerprints)
    if unread.keys() - found.values():
        for folder in folders:
            with suppress(TokenizerMissing):
                found[str(folder)] = TextTokenizer.load(folder).fingerprint
    for fingerprint in sorted(unread.keys() - found.values()):
        wanted = f"{min(unread[fingerprint])}-{fingerprint[:8]}"
        nearest = max(found, key=lambda place: SequenceMatcher(None, wanted, Path(place).name).ratio())
        structlog.get_logger("ttmark.keys").warning(
            "no_tokenizer_of_keys",
            keys=sorted(unread[fingerprint]),
            tokenizer_fingerprint=fingerprint[:12],
            nearest_by_name=nearest,
            nearest_fingerprint=found[nearest][:12],
        )
