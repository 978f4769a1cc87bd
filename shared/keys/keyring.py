"""Keys and the life cycle of their versions, over any record store."""

from collections.abc import Callable
from datetime import UTC, datetime

from shared.keys.audit import Action, AuditEvent, AuditSink, no_audit
from shared.keys.data_key import DataKey
from shared.keys.envelope import Envelope
from shared.keys.errors import KeyExists, KeyNotFound, KeyStoreError, ReplicasBehind, RevisionConflict
from shared.keys.kek import KeyWrapper
from shared.keys.key_codec import KIND, describe, dump_record, load_record, new_version, unlock
from shared.keys.ledger import Ledger
from shared.keys.records import KeyInfo, KeyRecord, KeyState, VersionRecord, check_name
from shared.keys.replicas import replicas_behind
from shared.keys.store import RecordStore
from shared.keys.transitions import disabled, find_version, next_version, promoted, retired
from shared.keys.unlocked import UnlockedKey
from shared.keys.vault import Vault
from shared.schemas.profile import Profile

_ATTEMPTS = 8


class KeyRing:
    """Creates, rotates and opens keys. Of two changes at once, one is applied after the other.

    Every method raises StoreUnavailable, RecordTampered, RecordRolledBack and UnknownKek; those that
    take a key id raise KeyNotFound.
    """

    def __init__(
        self,
        store: RecordStore,
        kek: KeyWrapper,
        *,
        ledger: Ledger | None = None,
        audit: AuditSink = no_audit,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._vault = Vault(store, kek, ledger)
        self._unlocked: dict[str, tuple[Envelope, UnlockedKey]] = {}
        self._audit = audit
        self._now = now

    async def create(self, key_id: str, *, tenant: str, profile: Profile) -> KeyInfo:
        """A new key with version 1 as its primary: no replica can be behind on a key that nobody uses yet.

        Raises:
            KeyExists, InvalidName.
        """
        check_name("key id", key_id)
        check_name("tenant", tenant)
        if await self._vault.read(KIND, key_id) is not None:
            raise KeyExists(f"key {key_id} exists")
        now = self._now()
        data_key = DataKey.generate()
        version = new_version(data_key, key_id, profile, 1, KeyState.PRIMARY, epoch=1, now=now)
        record = KeyRecord(key_id=key_id, tenant=tenant, profile=profile, created_at=now, versions=(version,))
        try:
            envelope = await self._vault.write(
                KIND, key_id, dump_record(record), previous=None, data_key=data_key
            )
        except RevisionConflict as error:
            raise KeyExists(f"key {key_id} exists") from error
        self._audit(AuditEvent("key.create", key_id=key_id, version=1, tenant=tenant))
        return describe(record, envelope)

    async def list(self, *, tenant: str | None = None) -> list[KeyInfo]:
        """All keys, or those of one tenant, ordered by id; no secrets."""
        envelopes, problems = await self._vault.read_all(KIND)
        for problem in problems.values():
            raise problem
        infos = [describe(load_record(envelope), envelope) for envelope in envelopes.values()]
        return [info for info in infos if tenant in (None, info.tenant)]

    async def info(self, key_id: str) -> KeyInfo:
        """One key, without secrets."""
        envelope = await self._read(key_id)
        return describe(load_record(envelope), envelope)

    async def rotate(self, key_id: str) -> KeyInfo:
        """Adds a pending version, which is promoted once every replica knows it.

        Raises:
            InvalidTransition: there is a pending version already.
        """

        def change(record: KeyRecord, envelope: Envelope) -> KeyRecord:
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

        info = await self._change(key_id, change)
        self._audited("key.rotate", info, info.versions[-1].version)
        return info

    async def promote(self, key_id: str, version: int, *, force: bool = False) -> KeyInfo:
        """The pending version becomes the primary one, which becomes active. Repeating it changes nothing.

        Raises:
            ReplicasBehind: a replica that may be running does not know the version yet; `force` skips this.
        """
        if not force:
            record = load_record(await self._read(key_id))
            await self._check_known(record, find_version(record, version))
        return await self._transition("key.promote", key_id, version, promoted)

    async def retire(self, key_id: str, version: int) -> KeyInfo:
        """A pending or active version is no longer looked for. Repeating it changes nothing."""
        return await self._transition("key.retire", key_id, version, retired)

    async def disable(self, key_id: str, version: int) -> KeyInfo:
        """Takes a compromised version out of use; without its primary a key generates nothing."""
        return await self._transition("key.disable", key_id, version, disabled)

    async def open(self, key_id: str) -> UnlockedKey:
        """The key with all versions unwrapped."""
        return unlock(await self._read(key_id))

    async def open_all(self) -> tuple[dict[str, UnlockedKey], dict[str, KeyStoreError]]:
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
        envelope = await self._vault.read(KIND, key_id)
        if envelope is None:
            raise KeyNotFound(f"there is no key {key_id}")
        return envelope

    async def _transition(
        self,
        action: Action,
        key_id: str,
        version: int,
        step: Callable[[KeyRecord, int, datetime], KeyRecord],
    ) -> KeyInfo:
        def change(record: KeyRecord, _: Envelope) -> KeyRecord:
            return step(record, version, self._now())

        info = await self._change(key_id, change)
        self._audited(action, info, version)
        return info

    async def _check_known(self, record: KeyRecord, version: VersionRecord) -> None:
        if version.state is not KeyState.PENDING:
            return
        behind = await replicas_behind(self._store, record.key_id, version.epoch, self._now())
        if behind:
            raise ReplicasBehind(
                f"version {version.version} of {record.key_id} is not known yet to {', '.join(behind)}: "
                "try again in a moment, or force it if they will not come back"
            )

    def _audited(self, action: Action, info: KeyInfo, version: int) -> None:
        self._audit(AuditEvent(action, key_id=info.key_id, version=version, tenant=info.tenant))

    async def _change(self, key_id: str, change: Callable[[KeyRecord, Envelope], KeyRecord]) -> KeyInfo:
        for attempt in range(_ATTEMPTS):
            envelope = await self._read(key_id)
            record = load_record(envelope)
            changed = change(record, envelope)
            if changed == record:
                return describe(record, envelope)
            try:
                envelope = await self._vault.write(KIND, key_id, dump_record(changed), previous=envelope)
            except RevisionConflict:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return describe(changed, envelope)
        raise RevisionConflict(f"key {key_id} keeps changing")
