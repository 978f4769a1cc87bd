"""Keys and the life cycle of their versions, over any record store."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ttmark.shared.events import Event, EventSink, drop_event
from ttmark.shared.keys.held_keys import ForeignKey, HeldKey, KeyState, UnlockedKey
from ttmark.shared.keys.key_codec import KIND, describe, dump_record, load_record, new_version, unlock
from ttmark.shared.keys.key_records import KeyInfo, KeyRecord, VersionRecord
from ttmark.shared.keys.replica_reports import replicas_behind
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.envelope import Envelope
from ttmark.shared.vault.kek import DataKey, KeyWrapper
from ttmark.shared.vault.ledger import Ledger
from ttmark.shared.vault.names import check_name
from ttmark.shared.vault.stores.key_store_errors import (
    InvalidTransition,
    KeyExists,
    KeyStoreError,
    NoSuchKey,
    ReplicasBehind,
    RevisionConflict,
)
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.vault.vault import Vault
from ttmark.shared.watermark.foreign.schemes import Secrets


class KeyRing:
    """Creates, rotates and opens keys. Of two changes at once, one is applied after the other.

    Every method may raise StoreUnavailable, RecordTampered, RecordRolledBack and UnknownKek; of a key that
    has to be there also NoSuchKey.
    """

    def __init__(
        self,
        store: RecordStore,
        kek: KeyWrapper,
        *,
        ledger: Ledger | None = None,
        audit: EventSink = drop_event,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._vault = Vault(store, kek, ledger)
        self._unlocked: dict[str, tuple[Envelope, HeldKey]] = {}
        self._audit = audit
        self._now = now

    async def create(
        self,
        key_id: str,
        *,
        tenant: str,
        profile: Profile | ForeignProfile,
        secrets: Secrets | None = None,
        secret: bytes | None = None,
    ) -> KeyInfo:
        """A new key. Its version 1 is primary at once (of a foreign key active), as nobody uses it yet.

        Args:
            profile: a foreign one makes a key that is looked for and never generated with.
            secrets: of a foreign scheme.
            secret: of a key of the library, 32 bytes; None: fresh ones.

        Raises:
            KeyExists, InvalidName.
        """
        check_name("key id", key_id)
        check_name("tenant", tenant)
        if await self._vault.read(KIND, key_id) is not None:
            raise KeyExists(f"key {key_id} exists")
        now, data_key, foreign = self._now(), DataKey.generate(), isinstance(profile, ForeignProfile)
        state = KeyState.ACTIVE if foreign else KeyState.PRIMARY
        version = new_version(
            data_key, key_id, profile, 1, state, epoch=1, now=now, secrets=secrets, secret=secret
        )
        if foreign or secret is not None:  # whoever gave the key has it
            version = version.model_copy(update={"exported_at": now})
        record = KeyRecord(key_id=key_id, tenant=tenant, profile=profile, created_at=now, versions=(version,))
        try:
            envelope = await self._vault.write(
                KIND, key_id, dump_record(record), previous=None, data_key=data_key
            )
        except RevisionConflict as error:
            raise KeyExists(f"key {key_id} exists") from error
        action = "key.import" if foreign or secret is not None else "key.create"
        return self._audited(action, describe(envelope), version=1)

    async def list(self, *, tenant: str | None = None) -> list[KeyInfo]:
        """All keys, or those of one tenant, ordered by id; no secrets."""
        envelopes, problems = await self._vault.read_all(KIND)
        for problem in problems.values():
            raise problem
        infos = map(describe, envelopes.values())
        return [info for info in infos if tenant in (None, info.tenant)]

    async def info(self, key_id: str) -> KeyInfo:
        return describe(await self._read(key_id))

    async def rotate(self, key_id: str, *, primary: int | None = None) -> KeyInfo:
        """Adds a pending version: call `promote` once every replica knows it.

        Args:
            primary: rotates only while this version is the primary one.

        Raises:
            InvalidTransition: there is a pending version already, or another primary one.
        """

        def change(record: KeyRecord, envelope: Envelope) -> KeyRecord:
            check_own(record)
            if primary is not None:
                check_primary(record, primary)
            version = new_version(
                envelope.data_key,
                key_id,
                record.profile,
                next_version(record),
                KeyState.PENDING,
                epoch=envelope.epoch + 1,
                now=self._now(),
            )
            return record.model_copy(update={"versions": (*record.versions, version)})

        info = describe(await self._change(key_id, change))
        return self._audited("key.rotate", info, version=info.versions[-1].version)

    async def promote(self, key_id: str, version: int, *, force: bool = False) -> KeyInfo:
        """Makes the pending version primary, and the old primary active. Repeating it changes nothing.

        Raises:
            ReplicasBehind: a replica that may be running does not know the version yet; `force` skips this.
        """
        if not force:
            record = load_record(await self._read(key_id))
            check_own(record)
            if (known := find_version(record, version)).state is KeyState.PENDING:
                behind = await replicas_behind(self._store, key_id, known.epoch, self._now())
                if behind:
                    raise ReplicasBehind(
                        f"version {version} of {key_id} is not known yet to {', '.join(behind)}: "
                        "try again in a moment, or force it if they will not come back"
                    )
        return await self._transition("key.promote", key_id, version, promoted)

    async def rotate_after(self, key_id: str, tokens: int | None) -> KeyInfo:
        """Sets after how many marked tokens a primary version is due for rotation; None: never.

        Raises:
            ValueError: fewer than one token.
        """
        if tokens is not None and tokens < 1:
            raise ValueError("a version is rotated after at least one token")

        def change(record: KeyRecord, _: Envelope) -> KeyRecord:
            check_own(record)
            return record.model_copy(update={"rotate_after_tokens": tokens})

        return self._audited("key.limit", describe(await self._change(key_id, change)), tokens=tokens)

    async def retire(self, key_id: str, version: int) -> KeyInfo:
        """A pending or active version is no longer looked for. Repeating it changes nothing."""
        return await self._transition("key.retire", key_id, version, retired)

    async def disable(self, key_id: str, version: int) -> KeyInfo:
        """Takes a compromised version out of use; without its primary a key generates nothing."""
        return await self._transition("key.disable", key_id, version, disabled)

    async def export(self, key_id: str) -> tuple[KeyInfo, UnlockedKey]:
        """The key with its versions unwrapped, for another program, once the record says that they left.

        It writes to the store, so that it takes the right to change keys, which services lack.

        Raises:
            InvalidTransition: no version is detected.
        """

        def change(record: KeyRecord, _: Envelope) -> KeyRecord:
            check_own(record)
            return exported(record, self._now())

        envelope = await self._change(key_id, change)
        key = own_key(unlock(envelope))
        names = tuple(f"{key.key_id}/{version.version}" for version in key.detectable)
        return self._audited("key.export", describe(envelope), keys=names), key

    async def open(self, key_id: str) -> UnlockedKey:
        """A key of this system with all versions unwrapped.

        Raises:
            InvalidTransition: it is another system's.
        """
        return own_key(unlock(await self._read(key_id)))

    async def open_all(self) -> tuple[dict[str, HeldKey], dict[str, KeyStoreError]]:
        """Every key by id, and what is wrong with those that cannot be opened."""
        envelopes, problems = await self._vault.read_all(KIND)
        unlocked = {}
        for key_id, envelope in envelopes.items():
            # The vault gives the same object as long as the record is the same.
            before = self._unlocked.get(key_id)
            try:
                unlocked[key_id] = (
                    before if before and before[0] is envelope else (envelope, unlock(envelope))
                )
            except KeyStoreError as error:
                problems[key_id] = error
        self._unlocked = unlocked
        return {key_id: key for key_id, (_, key) in unlocked.items()}, problems

    async def rewrap(self) -> int:
        """Wraps the keys' data keys under the current key-encryption key; how many were changed."""
        return await self._vault.rewrap(KIND)

    async def watch(self, changed: Callable[[], None]) -> None:
        """Calls `changed` soon after a key changed; a hint, which may be missing."""
        await self._store.watch(lambda kind: changed() if kind == KIND else None)

    async def _read(self, key_id: str) -> Envelope:
        return _existing(key_id, await self._vault.read(KIND, key_id))

    async def _transition(
        self, action: str, key_id: str, version: int, step: Callable[[KeyRecord, int, datetime], KeyRecord]
    ) -> KeyInfo:
        def change(record: KeyRecord, _: Envelope) -> KeyRecord:
            return step(record, version, self._now())

        return self._audited(action, describe(await self._change(key_id, change)), version=version)

    def _audited(self, action: str, info: KeyInfo, version: int | None = None, **said: Any) -> KeyInfo:
        self._audit(Event(action, key_id=info.key_id, version=version, tenant=info.tenant, **said))
        return info

    async def _change(self, key_id: str, change: Callable[[KeyRecord, Envelope], KeyRecord]) -> Envelope:
        def new_body(envelope: Envelope) -> Mapping[str, object] | None:
            record = load_record(envelope)
            changed = change(record, envelope)
            return None if changed == record else dump_record(changed)

        envelope, _ = await self._vault.change(KIND, key_id, new_body)
        return _existing(key_id, envelope)


def _existing(key_id: str, envelope: Envelope | None) -> Envelope:
    if envelope is None:
        raise NoSuchKey(f"there is no key {key_id}")
    return envelope


_RETIRABLE = (KeyState.PENDING, KeyState.ACTIVE)


def find_version(record: KeyRecord, version: int) -> VersionRecord:
    for candidate in record.versions:
        if candidate.version == version:
            return candidate
    raise NoSuchKey(f"key {record.key_id} has no version {version}")


def check_own(record: KeyRecord) -> None:
    """Raises InvalidTransition where the key is another system's: it marks no text here."""
    if isinstance(record.profile, ForeignProfile):
        raise _another_systems(record.key_id, record.profile)


def own_key(key: HeldKey) -> UnlockedKey:
    if isinstance(key, ForeignKey):
        raise _another_systems(key.key_id, key.profile)
    return key


def _another_systems(key_id: str, profile: ForeignProfile) -> InvalidTransition:
    return InvalidTransition(
        f"key {key_id} is another system's ({profile.scheme}): its texts are looked for, none are made "
        "with it here; it can be retired and disabled"
    )


def next_version(record: KeyRecord) -> int:
    """The number that a rotation gives to its version.

    Raises:
        InvalidTransition: a version is pending already.
    """
    for version in record.versions:
        if version.state is KeyState.PENDING:
            raise InvalidTransition(
                f"version {version.version} of {record.key_id} is pending: promote or retire it first"
            )
    return max(version.version for version in record.versions) + 1


def check_primary(record: KeyRecord, version: int) -> None:
    """Raises InvalidTransition where another version is the primary one: somebody rotated meanwhile."""
    if find_version(record, version).state is not KeyState.PRIMARY:
        raise InvalidTransition(f"version {version} of {record.key_id} is no longer the primary one")


def promoted(record: KeyRecord, version: int, now: datetime) -> KeyRecord:
    """A pending version becomes primary, the old primary active; one already primary is unchanged."""
    check_own(record)
    state = find_version(record, version).state
    if state is KeyState.PRIMARY:
        return record
    if state is not KeyState.PENDING:
        raise InvalidTransition(
            f"version {version} of {record.key_id} is {state}: only a pending one is promoted"
        )
    return _changed(record, {KeyState.PRIMARY: KeyState.ACTIVE}, version, KeyState.PRIMARY, now)


def retired(record: KeyRecord, version: int, now: datetime) -> KeyRecord:
    """The version is no longer detected; one that is primary has to be followed by another first."""
    state = find_version(record, version).state
    if state is KeyState.RETIRED:
        return record
    if state not in _RETIRABLE:
        hint = "promote another version first" if state is KeyState.PRIMARY else "it stays so"
        raise InvalidTransition(f"version {version} of {record.key_id} is {state}: {hint}")
    return _changed(record, {}, version, KeyState.RETIRED, now)


def disabled(record: KeyRecord, version: int, now: datetime) -> KeyRecord:
    """The version is neither generated with nor detected, at once and for good, whatever its state was."""
    if find_version(record, version).state is KeyState.DISABLED:
        return record
    return _changed(record, {}, version, KeyState.DISABLED, now)


def exported(record: KeyRecord, now: datetime) -> KeyRecord:
    """The versions that are detected bear the time at which their keys left the store."""
    if not any(version.state.detectable for version in record.versions):
        raise InvalidTransition(f"key {record.key_id} has no version that is detected")
    versions = tuple(
        version.model_copy(update={"exported_at": now}) if version.state.detectable else version
        for version in record.versions
    )
    return record.model_copy(update={"versions": versions})


def _changed(
    record: KeyRecord, others: dict[KeyState, KeyState], version: int, state: KeyState, now: datetime
) -> KeyRecord:
    versions = []
    for old in record.versions:
        new_state = state if old.version == version else others.get(old.state, old.state)
        changed_at = old.changed_at if new_state is old.state else now
        versions.append(old.model_copy(update={"state": new_state, "changed_at": changed_at}))
    return record.model_copy(update={"versions": tuple(versions)})
