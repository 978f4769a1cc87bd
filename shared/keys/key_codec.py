"""Between the body of an envelope and a key: sealing new secrets, opening them, showing the rest."""

import base64
import os
from datetime import datetime

from pydantic import ValidationError

from shared.keys.data_key import DataKey
from shared.keys.derive import derive_prf_key
from shared.keys.envelope import Envelope, canonical_json
from shared.keys.errors import RecordTampered
from shared.keys.records import KeyInfo, KeyRecord, KeyState, VersionInfo, VersionRecord
from shared.keys.unlocked import UnlockedKey, UnlockedVersion
from shared.schemas.profile import Profile

KIND = "key"
SECRET_BYTES = 32


def _secret_name(key_id: str, version: int, profile: Profile, epoch: int) -> bytes:
    """Associated data of a sealed secret."""
    return canonical_json(["ttmark secret", key_id, version, profile.canonical().decode(), epoch])


def new_version(
    data_key: DataKey,
    key_id: str,
    profile: Profile,
    version: int,
    state: KeyState,
    *,
    epoch: int,
    now: datetime,
) -> VersionRecord:
    """A version with a fresh 256-bit secret, sealed for this key, number, profile and epoch."""
    sealed = data_key.seal(os.urandom(SECRET_BYTES), _secret_name(key_id, version, profile, epoch))
    return VersionRecord(
        version=version,
        state=state,
        created_at=now,
        changed_at=now,
        epoch=epoch,
        sealed_secret=base64.b64encode(sealed).decode(),
    )


def unlock(envelope: Envelope) -> UnlockedKey:
    """Opens the secrets of all versions and derives their PRF keys."""
    record = load_record(envelope)
    versions = []
    for version in record.versions:
        name = _secret_name(record.key_id, version.version, record.profile, version.epoch)
        secret = envelope.data_key.open(base64.b64decode(version.sealed_secret), name)
        versions.append(
            UnlockedVersion(version.version, version.state, derive_prf_key(secret, record.profile))
        )
    return UnlockedKey(record.key_id, record.tenant, record.profile, envelope.epoch, tuple(versions))


def load_record(envelope: Envelope) -> KeyRecord:
    """The key's record in an opened envelope.

    Raises:
        RecordTampered: the body, although authentic, is not one that this version of the program writes.
    """
    try:
        return KeyRecord.model_validate(envelope.body)
    except ValidationError as error:
        raise RecordTampered("the record of a key has another format than this program writes") from error


def dump_record(record: KeyRecord) -> dict[str, object]:
    """The body of the envelope."""
    return record.model_dump(mode="json")


def describe(record: KeyRecord, envelope: Envelope) -> KeyInfo:
    """What may be shown of a key."""
    versions = tuple(
        VersionInfo(
            version=version.version,
            state=version.state,
            created_at=version.created_at,
            changed_at=version.changed_at,
        )
        for version in record.versions
    )
    return KeyInfo(
        key_id=record.key_id,
        tenant=record.tenant,
        profile=record.profile,
        created_at=record.created_at,
        epoch=envelope.epoch,
        versions=versions,
    )
