"""A record sealed under a data key of its own, which goes with it, wrapped by the key-encryption key."""

import base64

import orjson

from ttmark.shared.vault.data_key import DataKey
from ttmark.shared.vault.kek import KeyWrapper


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
