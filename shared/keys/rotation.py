"""The life cycle of a key's versions, as pure functions from records to records."""

from datetime import datetime

from ttmark.shared.keys.key_records import KeyRecord, VersionRecord
from ttmark.shared.keys.records import ForeignKey, HeldKey, KeyState, UnlockedKey
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.vault.key_store_errors import InvalidTransition, KeyNotFound

_RETIRABLE = (KeyState.PENDING, KeyState.ACTIVE)


def find_version(record: KeyRecord, version: int) -> VersionRecord:
    """The version of that number, or KeyNotFound."""
    for candidate in record.versions:
        if candidate.version == version:
            return candidate
    raise KeyNotFound(f"key {record.key_id} has no version {version}")


def check_own(record: KeyRecord) -> None:
    """Raises InvalidTransition where the key is another system's: it marks no text here."""
    if isinstance(record.profile, ForeignProfile):
        raise _another_systems(record.key_id, record.profile)


def own_key(key: HeldKey) -> UnlockedKey:
    """The key, or InvalidTransition where it is another system's."""
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
    """The pending version becomes primary and the primary one active; a primary version stays as it is."""
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
