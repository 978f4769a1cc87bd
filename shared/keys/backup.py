"""Encrypted backup of all keys and tokens, and its restoration into a store that lost them."""

import base64
from dataclasses import dataclass

import orjson

from ttmark.shared.access import token_records
from ttmark.shared.keys import key_codec
from ttmark.shared.vault.data_key import DataKey
from ttmark.shared.vault.envelope import Envelope, open_envelope, seal_envelope
from ttmark.shared.vault.kek import KeyWrapper
from ttmark.shared.vault.key_store_errors import RecordRolledBack
from ttmark.shared.vault.store import RecordStore

RECORD_KINDS = (key_codec.KIND, token_records.KIND)
_KIND, _RECORD_ID, _CONTENT = "backup", "all", b"ttmark backup"


@dataclass(frozen=True, slots=True)
class Restoration:
    """How many records of a backup were written, were there already, and are newer in the store."""

    restored: int
    unchanged: int
    newer: int


async def create_backup(store: RecordStore, kek: KeyWrapper) -> bytes:
    """Every key and token as a file that only the key-encryption key opens.

    Raises:
        RecordTampered: a record is damaged; a backup of it would be worth nothing.
        StoreUnavailable: the store is away.
    """
    records = []
    for kind in RECORD_KINDS:
        for record_id, stored in await store.scan(kind):
            await open_envelope(kek, kind, record_id, stored.payload, stored.revision)
            records.append([kind, record_id, stored.payload.decode()])
    data_key = DataKey.generate()
    sealed = data_key.seal(orjson.dumps(records), _CONTENT)
    body = {"sealed": base64.b64encode(sealed).decode()}
    return (await seal_envelope(kek, _KIND, _RECORD_ID, body, data_key, None)).payload


async def restore_backup(store: RecordStore, kek: KeyWrapper, backup: bytes) -> Restoration:
    """Writes the records that the store lacks; those that it has are never overwritten.

    Everything is checked before anything is written. Replicas that saw a later epoch of a record than
    the backup has go on refusing it, and serve what they know, until they are restarted.

    Raises:
        RecordTampered: the backup is damaged, or not one of this system.
        RecordRolledBack: the store has a record of the same name with another history.
        UnknownKek: it was made under another key-encryption key.
    """
    envelope = await open_envelope(kek, _KIND, _RECORD_ID, backup, 0)
    sealed = base64.b64decode(str(envelope.body["sealed"]))
    missing: list[tuple[str, str, bytes]] = []
    unchanged = newer = 0
    for kind, record_id, text in orjson.loads(envelope.data_key.open(sealed, _CONTENT)):
        saved = await open_envelope(kek, kind, record_id, text.encode(), 0)
        stored = await store.get(kind, record_id)
        if stored is None:
            missing.append((kind, record_id, saved.payload))
        elif stored.payload == saved.payload:
            unchanged += 1
        else:
            present = await open_envelope(kek, kind, record_id, stored.payload, stored.revision)
            _check_newer(kind, record_id, present, saved)
            newer += 1
    for kind, record_id, payload in missing:
        await store.put(kind, record_id, payload, expected_revision=0)
    return Restoration(len(missing), unchanged, newer)


def _check_newer(kind: str, record_id: str, present: Envelope, saved: Envelope) -> None:
    age = present.epoch - saved.epoch
    if age <= 0 or (age <= len(present.trail) and present.trail[-age] != saved.digest):
        raise RecordRolledBack(f"{kind} {record_id}: the store holds another history than the backup")
