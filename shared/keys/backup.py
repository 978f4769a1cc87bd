"""A whole key store: encrypted backup, restoration into a store that lost its records, and a check of all."""

import base64
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from ttmark.shared.access import tokens
from ttmark.shared.access.tokens import load_token
from ttmark.shared.keys import key_codec
from ttmark.shared.keys.held_keys import KeyState
from ttmark.shared.keys.key_codec import load_record, unlock
from ttmark.shared.keys.key_records import KeyRecord
from ttmark.shared.vault.envelope import open_envelope, seal_envelope
from ttmark.shared.vault.kek import DataKey, KeyWrapper
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError, RecordRolledBack, RecordTampered
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.vault.vault import Vault

RECORD_KINDS = (key_codec.KIND, tokens.KIND)
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
            age = present.epoch - saved.epoch
            if age <= 0 or (age <= len(present.trail) and present.trail[-age] != saved.digest):
                raise RecordRolledBack(f"{kind} {record_id}: the store holds another history than the backup")
            newer += 1
    for kind, record_id, payload in missing:
        await store.put(kind, record_id, payload, expected_revision=0)
    return Restoration(len(missing), unchanged, newer)


@dataclass(frozen=True, slots=True)
class BackupCheck:
    """What a store holds.

    Attributes:
        keys, versions, tokens: how many open.
        keks: how many records each key-encryption key wraps.
        problems: by kind and id, in one line each.
    """

    keys: int
    versions: int
    tokens: int
    keks: Mapping[str, int]
    problems: Mapping[str, str]


async def verify_store(store: RecordStore, kek: KeyWrapper, ledger: Ledger | None = None) -> BackupCheck:
    """Opens every secret of every key and every token.

    Raises:
        StoreUnavailable: the store is away.
    """
    vault = Vault(store, kek, ledger)
    problems: dict[str, str] = {}
    keks: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for kind in RECORD_KINDS:
        envelopes, unopened = await vault.read_all(kind)
        problems |= {f"{kind} {record_id}": str(error) for record_id, error in unopened.items()}
        for record_id, envelope in envelopes.items():
            keks[envelope.kek_id] += 1
            try:
                if kind == key_codec.KIND:
                    check_life_cycle(record_id, load_record(envelope))
                    counts["versions"] += len(unlock(envelope).versions)
                else:
                    load_token(envelope)
                counts[kind] += 1
            except KeyStoreError as error:
                problems[f"{kind} {record_id}"] = str(error)
    return BackupCheck(counts[key_codec.KIND], counts["versions"], counts[tokens.KIND], dict(keks), problems)


def check_life_cycle(key_id: str, record: KeyRecord) -> None:
    """Refuses a key under another name, with two primaries, two pending versions, or a gap in its numbers.

    Raises:
        RecordTampered: one of these.
    """
    states = Counter(version.state for version in record.versions)
    numbers = [version.version for version in record.versions]
    if record.key_id != key_id:
        raise RecordTampered(f"key {key_id} calls itself {record.key_id}")
    if states[KeyState.PRIMARY] > 1 or states[KeyState.PENDING] > 1:
        raise RecordTampered(f"key {key_id} has more than one primary or pending version")
    if numbers != list(range(1, len(numbers) + 1)):
        raise RecordTampered(f"key {key_id} has versions {numbers}")
