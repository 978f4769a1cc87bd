"""Authenticated records over a store: the layer that key ring and token registry share."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ttmark.shared.vault.envelope import Envelope, open_envelope, seal_envelope
from ttmark.shared.vault.kek import DataKey, KeyWrapper
from ttmark.shared.vault.ledger import Ledger, Sighting
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError, RevisionConflict, StoreUnavailable
from ttmark.shared.vault.stores.store import RecordStore, Stored

_ATTEMPTS = 8


class Vault:
    """Reads and writes envelopes, refuses altered ones and those that went back in time.

    A record whose bytes did not change since it was last opened is not opened again, which spares a
    remote key-encryption key a call per refresh.
    """

    def __init__(self, store: RecordStore, kek: KeyWrapper, ledger: Ledger | None = None) -> None:
        self._store = store
        self._kek = kek
        self._ledger = ledger or Ledger()
        self._opened: dict[tuple[str, str], Envelope] = {}

    async def rewrap(self, kind: str) -> int:
        """Wraps the data keys of a kind anew under the current key-encryption key; how many were changed.

        It may be interrupted and repeated. The secrets stay sealed.
        """
        changed = 0
        for record_id, _ in await self._store.scan(kind):
            _, rewrapped = await self.change(kind, record_id, self._if_wrapped_otherwise)
            changed += rewrapped
        return changed

    async def read(self, kind: str, record_id: str) -> Envelope | None:
        """The record, or None where there never was one.

        Raises:
            RecordTampered, UnknownKek, StoreUnavailable.
        """
        before = self._ledger.sighting(kind, record_id)
        envelope = await self._open(kind, record_id, await self._store.get(kind, record_id), before)
        self._ledger.save()
        return envelope

    async def read_all(self, kind: str) -> tuple[dict[str, Envelope], dict[str, KeyStoreError]]:
        """All records of a kind by id, and what is wrong with those that cannot be opened or are gone."""
        before = self._ledger.sightings(kind)
        stored = dict(await self._store.scan(kind))
        records: dict[str, Envelope] = {}
        problems: dict[str, KeyStoreError] = {}
        for record_id in sorted(stored.keys() | before.keys()):
            try:
                envelope = await self._open(kind, record_id, stored.get(record_id), before.get(record_id))
            except KeyStoreError as error:
                problems[record_id] = error
            else:
                if envelope is not None:
                    records[record_id] = envelope
        self._ledger.save()
        return records, problems

    async def check_kept(self) -> None:
        """Makes sure that the store has what it had: else nothing follows from a record that is missing.

        Raises:
            RecordRolledBack: a record that was seen is gone.
            StoreUnavailable: it cannot be asked, or nothing was ever seen in it.
        """
        seen = self._ledger.any_record()
        if seen is None:
            raise StoreUnavailable("nothing was found in the key store so far: it may have lost its records")
        if await self._store.get(*seen) is None:
            self._ledger.check(*seen, None, self._ledger.sighting(*seen))

    async def write(
        self,
        kind: str,
        record_id: str,
        body: Mapping[str, Any],
        *,
        previous: Envelope | None,
        data_key: DataKey | None = None,
    ) -> Envelope:
        """Stores the successor of `previous` (None: a new record) under the current key-encryption key.

        Raises:
            RevisionConflict: `previous` is not what the store holds.
        """
        before = self._ledger.sighting(kind, record_id)
        key = data_key or (previous.data_key if previous else DataKey.generate())
        envelope = await seal_envelope(self._kek, kind, record_id, body, key, previous)
        revision = await self._store.put(
            kind, record_id, envelope.payload, expected_revision=previous.revision if previous else 0
        )
        envelope = replace(envelope, revision=revision)
        self._ledger.check(kind, record_id, envelope, before)
        self._ledger.save()
        self._opened[kind, record_id] = envelope
        return envelope

    async def change(
        self, kind: str, record_id: str, new_body: Callable[[Envelope], Mapping[str, Any] | None]
    ) -> tuple[Envelope | None, bool]:
        """The record (None: there never was one) after a change, and whether it was changed.

        Args:
            new_body: from the record as it is; None: no change. Asked again when somebody else wrote first.

        Raises:
            RevisionConflict: others write all the time.
        """
        for _ in range(_ATTEMPTS):
            envelope = await self.read(kind, record_id)
            body = new_body(envelope) if envelope else None
            if body is None:
                return envelope, False
            with suppress(RevisionConflict):
                return await self.write(kind, record_id, body, previous=envelope), True
        raise RevisionConflict(f"{kind} {record_id} keeps changing")

    def _if_wrapped_otherwise(self, envelope: Envelope) -> Mapping[str, Any] | None:
        """The body of a record whose data key another key-encryption key wraps."""
        return None if envelope.kek_id == self._kek.kek_id else envelope.body

    async def _open(
        self, kind: str, record_id: str, stored: Stored | None, before: Sighting | None
    ) -> Envelope | None:
        if stored is None:
            self._ledger.check(kind, record_id, None, before)
            return None
        known = self._opened.get((kind, record_id))
        if known is not None and known.payload == stored.payload and known.revision == stored.revision:
            envelope = known
        else:
            envelope = await open_envelope(self._kek, kind, record_id, stored.payload, stored.revision)
        self._ledger.check(kind, record_id, envelope, before)
        self._opened[kind, record_id] = envelope
        return envelope
