"""Between the body of an envelope and a key: sealing new secrets, opening them, showing the rest."""

import base64
import hmac
import os
import struct
from datetime import datetime

import orjson
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import ValidationError

from ttmark.shared.keys.held_keys import (
    ForeignKey,
    ForeignVersion,
    HeldKey,
    KeyState,
    UnlockedKey,
    UnlockedVersion,
)
from ttmark.shared.keys.key_records import KeyInfo, KeyRecord, VersionRecord
from ttmark.shared.schemas.foreign_profile import ForeignProfile
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.envelope import Envelope, canonical_json
from ttmark.shared.vault.kek import DataKey
from ttmark.shared.vault.stores.key_store_errors import RecordTampered
from ttmark.shared.watermark.foreign import ForeignMark
from ttmark.shared.watermark.foreign.schemes import FOREIGN_SCHEMES, Secrets

PRF_KEY_BYTES = 16


def derive_prf_keys(secret: bytes, profile: Profile) -> tuple[bytes, ...]:
    """The 16-byte PRF keys of the profile's pool [pool]: HKDF-SHA256 (RFC 5869), no salt.

    Info is the profile's canonical form, in a pool of several followed by a zero byte and the key's number
    (`docs/spec.md`). Two profiles never share a PRF key, even when they share a secret.
    """
    info = profile.canonical()
    if profile.pool == 1:
        return (HKDF(algorithm=SHA256(), length=PRF_KEY_BYTES, salt=None, info=info).derive(secret),)
    prk = hmac.digest(bytes(SHA256.digest_size), secret, "sha256")
    return tuple(
        # HKDF-Expand of no more than one digest.
        hmac.digest(prk, info + struct.pack("<xI", number) + b"\x01", "sha256")[:PRF_KEY_BYTES]
        for number in range(profile.pool)
    )


KIND = "key"
SECRET_BYTES = 32


def _secret_name(key_id: str, version: int, profile: Profile | ForeignProfile, epoch: int) -> bytes:
    return canonical_json(["ttmark secret", key_id, version, profile.canonical().decode(), epoch])


def new_version(
    data_key: DataKey,
    key_id: str,
    profile: Profile | ForeignProfile,
    version: int,
    state: KeyState,
    *,
    epoch: int,
    now: datetime,
    secrets: Secrets | None = None,
    secret: bytes | None = None,
) -> VersionRecord:
    """A version with its secret sealed for this key, number, profile and epoch.

    Args:
        secrets: of a foreign scheme.
        secret: of a key of ours; None of both: 256 fresh bits.
    """
    if secrets is not None:
        secret = canonical_json(dict(secrets))
    elif secret is None:
        secret = os.urandom(SECRET_BYTES)
    sealed = data_key.seal(secret, _secret_name(key_id, version, profile, epoch))
    return VersionRecord(
        version=version,
        state=state,
        created_at=now,
        changed_at=now,
        epoch=epoch,
        sealed_secret=base64.b64encode(sealed).decode(),
    )


def unlock(envelope: Envelope) -> HeldKey:
    """Opens the secrets of all versions and derives their PRF keys, or makes the marks of a foreign key."""
    record = load_record(envelope)
    profile = record.profile
    opened = [(version, _opened(envelope, record, version)) for version in record.versions]
    if isinstance(profile, ForeignProfile):
        marks = tuple(
            ForeignVersion(version.version, version.state, _mark(profile, secret))
            for version, secret in opened
        )
        return ForeignKey(record.key_id, record.tenant, profile, envelope.epoch, marks)
    versions = tuple(
        UnlockedVersion(version.version, version.state, *derive_prf_keys(secret, profile))
        for version, secret in opened
    )
    limit = record.rotate_after_tokens
    return UnlockedKey(record.key_id, record.tenant, profile, envelope.epoch, versions, limit)


def _opened(envelope: Envelope, record: KeyRecord, version: VersionRecord) -> bytes:
    name = _secret_name(record.key_id, version.version, record.profile, version.epoch)
    return envelope.data_key.open(base64.b64decode(version.sealed_secret), name)


def _mark(profile: ForeignProfile, secret: bytes) -> ForeignMark:
    try:
        return FOREIGN_SCHEMES[profile.scheme].mark(profile.parameters, orjson.loads(secret))
    except (KeyError, TypeError, ValueError) as error:
        raise RecordTampered("the record of a foreign key does not describe its scheme") from error


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
    """The body of the envelope; what is not set is left out, as programs before it read it."""
    body = record.model_dump(mode="json")
    of_versions = [(one, name) for one in body["versions"] for name in ("exported_at", "revealed_at")]
    for fields, name in [(body, "rotate_after_tokens"), *of_versions]:
        if fields[name] is None:
            del fields[name]
    return {**body, "profile": record.profile.stored()}


def describe(envelope: Envelope) -> KeyInfo:
    record = load_record(envelope)
    versions = [version.shown() for version in record.versions]
    return KeyInfo.model_validate({**dict(record), "epoch": envelope.epoch, "versions": versions})
