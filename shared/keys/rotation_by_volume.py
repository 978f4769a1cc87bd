"""How many tokens each key version has marked: counted in memory, added to the store every few seconds."""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import structlog

from ttmark.shared.events import Event
from ttmark.shared.keys.held_keys import HeldKey, KeyState, own_keys
from ttmark.shared.keys.key_records import KeyInfo
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.vault.stores.key_store_errors import InvalidTransition, KeyStoreError, ReplicasBehind
from ttmark.shared.vault.stores.store import RecordStore


def volume_name(key_id: str, version: int) -> str:
    return f"{key_id}/{version}"


class VolumeCounter:
    """The marked tokens of one replica; runs as an async context inside of that of its store.

    While the store is away the counts stay here and are added later. A crash loses those of the last
    `every_seconds`, a broken reply counts some twice: a rotation comes a little late or early.

    Args:
        keys: the keys in hand; of those with a limit the volume of all replicas is read as well.
    """

    def __init__(
        self, store: RecordStore, keys: Callable[[], Collection[HeldKey]], *, every_seconds: float = 5.0
    ) -> None:
        self._store = store
        self._keys = keys
        self._every_seconds = every_seconds
        self._counted: Counter[str] = Counter()
        self._sums: dict[str, int] = {}
        self._failing = False
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._report_forever(), name="key-volume")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        with suppress(KeyStoreError):
            await self.report()

    def count(self, key_id: str, version: int, tokens: int) -> None:
        self._counted[volume_name(key_id, version)] += tokens

    def hear(self, event: Event) -> None:
        """Counts the tokens of `key.generated` with a key, of cancelled completions too."""
        if event.action == "key.generated" and "key_id" in event.said and event.said["tokens"]:
            self.count(event.said["key_id"], event.said["version"], event.said["tokens"])

    @property
    def unreported(self) -> int:
        return self._counted.total()

    @property
    def share(self) -> float:
        """The primary version nearest to its limit: its marked tokens over the limit; 0 without limits."""
        shares = [
            (self._sums.get(name, 0) + self._counted[name]) / limit for name, limit in self._limits().items()
        ]
        return max(shares, default=0.0)

    async def report(self) -> None:
        """Adds what was counted since the last time.

        Raises:
            StoreUnavailable: the store is away; the counts stay here.
        """
        counted, self._counted = self._counted, Counter()
        try:
            # An amount of 0 reads what the other replicas have marked.
            self._sums = await self._store.add({**dict.fromkeys(self._limits(), 0), **counted})
        except BaseException:
            self._counted.update(counted)
            raise

    def _limits(self) -> dict[str, int]:
        return {
            volume_name(key.key_id, key.primary.version): key.rotate_after_tokens
            for key in own_keys(self._keys())
            if key.primary is not None and key.rotate_after_tokens is not None
        }

    async def _report_forever(self) -> None:
        log = structlog.stdlib.get_logger("ttmark.keys")
        while True:
            await asyncio.sleep(self._every_seconds)
            try:
                await self.report()
            except Exception as error:  # the next report may go through
                if not self._failing:
                    log.warning("key_volume_not_reported", reason=str(error), tokens=self.unreported)
                self._failing = True
            else:
                self._failing = False


@dataclass(frozen=True, slots=True)
class Rotation:
    """What was done about a key whose primary version has reached its limit.

    Attributes:
        version: the one that follows.
        marked_tokens: of the version that was primary.
        waits_for: why the new version is not primary yet; None: it is.
    """

    key_id: str
    version: int
    marked_tokens: int
    waits_for: str | None


async def rotate_due(ring: KeyRing, volumes: Mapping[str, int], key_id: str | None = None) -> list[Rotation]:
    """Rotates each key, or the given one, whose primary version has reached its limit.

    A version is added where none is pending, and promoted as soon as every replica knows it; until then
    the next call goes on. Several callers at once rotate once.

    Args:
        volumes: marked tokens by `volume_name`.

    Raises:
        StoreUnavailable, RecordTampered, RecordRolledBack, UnknownKek.
    """
    chosen = [key for key in await ring.list() if key_id in (None, key.key_id)]
    rotations = [await _rotate(ring, key, volumes) for key in chosen]
    return [rotation for rotation in rotations if rotation is not None]


async def _rotate(ring: KeyRing, key: KeyInfo, volumes: Mapping[str, int]) -> Rotation | None:
    primary, limit = key.primary, key.rotate_after_tokens
    if primary is None or limit is None:
        return None
    marked = volumes.get(volume_name(key.key_id, primary.version), 0)
    if marked < limit:
        return None
    waits_for, following = None, key.versions[-1]
    try:
        if following.state is not KeyState.PENDING:
            following = (await ring.rotate(key.key_id, primary=primary.version)).versions[-1]
        await ring.promote(key.key_id, following.version)
    except ReplicasBehind as error:
        waits_for = str(error)
    except InvalidTransition:  # somebody else changes the key at this moment
        return None
    return Rotation(key.key_id, following.version, marked, waits_for)
