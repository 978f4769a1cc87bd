"""The keys that a service works with: in memory, refreshed in the background."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

import structlog

from ttmark.shared.events import Event, EventSink, drop_event
from ttmark.shared.keys.held_keys import HeldKey
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.replica_reports import ReplicaReporter
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError

_FIRST_RETRY_SECONDS = 0.2
_LAST_RETRY_SECONDS = 2.0


class KeyCache:
    """Unlocked keys, read again when the store announces a change and every `refresh_seconds`.

    While the store is away the known keys are served until they are `max_age_seconds` old. A record
    that turns out damaged, altered or rolled back does not replace what is known; `problems` names it, and
    `audit` hears of it once.
    With a `reporter`, the epochs in use are reported after each refresh, which rotations wait for.
    """

    def __init__(
        self,
        ring: KeyRing,
        *,
        refresh_seconds: float = 15.0,
        max_age_seconds: float = 900.0,
        reporter: ReplicaReporter | None = None,
        audit: EventSink = drop_event,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ring = ring
        self._refresh_seconds = refresh_seconds
        self.max_age_seconds = max_age_seconds
        self._reporter = reporter
        self._audit = audit
        self._log = structlog.stdlib.get_logger("ttmark.keys")
        self._monotonic = monotonic
        self._keys: dict[str, HeldKey] = {}
        self._refreshed_at: float | None = None
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self.problems: Mapping[str, KeyStoreError] = {}
        self.last_error: Exception | None = None

    async def start(self) -> None:
        """Reads the keys once and goes on in the background; does not fail when the store is away."""
        await self._try_refresh()
        self._tasks = [
            asyncio.create_task(self._refresh_forever(), name="key-cache"),
            asyncio.create_task(self._watch_forever(), name="key-changes"),
        ]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._keys = {}
        self._refreshed_at = None
        if self._reporter is not None:
            with suppress(KeyStoreError):
                await self._reporter.sign_off()

    @property
    def keys(self) -> Collection[HeldKey]:
        """All keys in hand, of every tenant, however old."""
        return self._keys.values()

    @property
    def age_seconds(self) -> float | None:
        """Time since the keys were last read; None before the first time."""
        refreshed_at = self._refreshed_at  # read once: threads ask, too
        return None if refreshed_at is None else self._monotonic() - refreshed_at

    @property
    def ready(self) -> bool:
        """Whether there is a key in hand that is not too old to be used."""
        return self._usable and bool(self._keys)

    def get(self, key_id: str) -> HeldKey | None:
        """The key; None when it is unknown or what is known is too old."""
        return self._keys.get(key_id) if self._usable else None

    def for_tenant(self, tenant: str) -> list[HeldKey]:
        """The tenant's keys, ordered by id; empty when what is known is too old."""
        return [key for key in self._keys.values() if key.tenant == tenant] if self._usable else []

    async def refresh(self) -> None:
        """Reads the keys now.

        Raises:
            StoreUnavailable: the store is away; what is known stays.
        """
        keys, problems = await self._ring.open_all()
        kept = {key_id: self._keys[key_id] for key_id in problems if key_id in self._keys}
        self._keys = dict(sorted((keys | kept).items()))
        self._note(problems)
        self._refreshed_at = self._monotonic()
        if self._reporter is not None:
            await self._reporter.report({key_id: key.epoch for key_id, key in self._keys.items()})

    @property
    def _usable(self) -> bool:
        age = self.age_seconds
        return age is not None and age <= self.max_age_seconds

    def _note(self, problems: Mapping[str, KeyStoreError]) -> None:
        for key_id, problem in problems.items():
            if str(problem) != str(self.problems.get(key_id)):
                self._log.error(
                    "key_record_refused", key_id=key_id, reason=str(problem), in_use=key_id in self._keys
                )
                self._audit(Event("store.refuse", key_id=key_id, reason=type(problem).__name__))
        for key_id in self.problems.keys() - problems.keys():
            self._log.info("key_record_accepted_again", key_id=key_id)
        self.problems = problems

    async def _try_refresh(self) -> None:
        before = self.last_error
        try:
            await self.refresh()
        except Exception as error:  # whatever it is: who reads no more never has the keys again
            self.last_error = error
            if before is None:
                self._log.warning("key_store_lost", reason=str(error), keys_in_use=len(self._keys))
        else:
            self.last_error = None
            if before is not None:
                self._log.info("key_store_back")

    async def _refresh_forever(self) -> None:
        retry_seconds = _FIRST_RETRY_SECONDS
        while True:
            if self.last_error is None:
                retry_seconds = _FIRST_RETRY_SECONDS
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._refresh_seconds):
                        await self._changed.wait()
            else:
                await asyncio.sleep(retry_seconds)
                retry_seconds = min(2 * retry_seconds, self._refresh_seconds, _LAST_RETRY_SECONDS)
            self._changed.clear()
            await self._try_refresh()

    async def _watch_forever(self) -> None:
        while True:
            with suppress(Exception):
                await self._ring.watch(self._changed.set)
            # What changed while nobody was listening is found by the next refresh.
            await asyncio.sleep(_LAST_RETRY_SECONDS)
            self._changed.set()
