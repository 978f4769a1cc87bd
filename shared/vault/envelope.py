"""A record as it is stored: a body in the clear, secrets in it sealed, all of it authenticated.

Each record has a random data key, wrapped by the key-encryption key. The data key seals the secrets
inside the body and authenticates the whole record with the name it is stored under, so a record that
was altered, truncated or moved is refused, and changing the key-encryption key touches no secret.
`epoch` counts the changes of the record and `trail` holds the digests of the versions before it, so
that whoever remembers one of them notices a record that went back in time.
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, ValidationError

from ttmark.shared.vault.kek import DataKey, KeyWrapper
from ttmark.shared.vault.stores.key_store_errors import RecordTampered

TRAIL_LENGTH = 32


def canonical_json(value: Any) -> bytes:
    """JSON with sorted keys and no white space: one text per value."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


class _RecordJson(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    format: Literal[1] = 1
    epoch: int
    trail: list[str]
    kek: str
    data_key: str
    body: dict[str, Any]
    mac: str = ""

    def authenticated(self, kind: str, record_id: str) -> bytes:
        """Everything but the MAC, with the name of the record."""
        return canonical_json([kind, record_id, self.model_dump(exclude={"mac"})])

    def opened(self, payload: bytes, data_key: DataKey, revision: int = 0) -> "Envelope":
        trail = tuple(self.trail)
        return Envelope(self.epoch, trail, self.kek, self.body, payload, data_key, revision)


@dataclass(frozen=True, slots=True)
class Envelope:
    """An opened record. `revision` is the store's, `payload` what lies there."""

    epoch: int
    trail: tuple[str, ...]
    kek_id: str
    body: Mapping[str, Any]
    payload: bytes = field(repr=False)
    data_key: DataKey = field(repr=False)
    revision: int = 0

    @property
    def digest(self) -> str:
        """SHA-256 of the payload, in hex."""
        return hashlib.sha256(self.payload).hexdigest()


async def seal_envelope(
    kek: KeyWrapper,
    kind: str,
    record_id: str,
    body: Mapping[str, Any],
    data_key: DataKey,
    previous: Envelope | None,
) -> Envelope:
    wrapped = await kek.wrap(data_key.exposed(), _wrap_name(kind, record_id))
    document = _RecordJson(
        epoch=previous.epoch + 1 if previous else 1,
        trail=[*previous.trail, previous.digest][-TRAIL_LENGTH:] if previous else [],
        kek=kek.kek_id,
        data_key=base64.b64encode(wrapped).decode(),
        body=dict(body),
    )
    document.mac = data_key.authenticate(document.authenticated(kind, record_id))
    return document.opened(canonical_json(document.model_dump()), data_key)


async def open_envelope(
    kek: KeyWrapper, kind: str, record_id: str, payload: bytes, revision: int
) -> Envelope:
    """Opens what `seal_envelope` made, from the very bytes that it made.

    Raises:
        RecordTampered: it is not that, or was stored under another name.
        UnknownKek: the key-encryption key that wrapped it is not at hand.
    """
    refused = RecordTampered(f"{kind} {record_id}: the stored record is damaged or was altered")
    try:
        document = _RecordJson.model_validate(orjson.loads(payload))
        wrapped = base64.b64decode(document.data_key, validate=True)
    except (orjson.JSONDecodeError, ValidationError, binascii.Error) as error:
        raise refused from error
    if canonical_json(document.model_dump()) != payload:
        raise refused
    try:
        data_key = DataKey(await kek.unwrap(document.kek, wrapped, _wrap_name(kind, record_id)))
    except RecordTampered as error:
        raise refused from error
    if not data_key.authenticates(document.authenticated(kind, record_id), document.mac):
        raise refused
    return document.opened(payload, data_key, revision)


def _wrap_name(kind: str, record_id: str) -> bytes:
    return canonical_json(["ttmark data key", kind, record_id])


async def seal_record(kek: KeyWrapper, name: bytes, plain: bytes) -> tuple[bytes, DataKey]:
    """`plain` sealed and bound to `name`, and the new key, with which more can be sealed."""
    key = DataKey.generate()
    wrapped = await kek.wrap(key.exposed(), name)
    fields = {
        "kek": kek.kek_id,
        "key": base64.b64encode(wrapped).decode(),
        "sealed": base64.b64encode(key.seal(plain, name)).decode(),
    }
    return orjson.dumps(fields), key


async def open_record(kek: KeyWrapper, name: bytes, sealed: bytes) -> tuple[bytes, DataKey]:
    """The inverse of `seal_record`.

    Raises:
        RecordTampered: it is not what was sealed under this name.
        UnknownKek: the key-encryption key that wrapped it is not at hand.
    """
    fields = orjson.loads(sealed)
    key = DataKey(await kek.unwrap(fields["kek"], base64.b64decode(fields["key"]), name))
    return key.open(base64.b64decode(fields["sealed"]), name), key
