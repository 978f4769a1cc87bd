"""Key material reaches no repr, format, pickle, copy, dump or error text."""

import base64
import copy
import pickle
import traceback

import pytest
from pydantic import BaseModel

from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.held_keys import KeyState, UnlockedVersion
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.kek import DataKey, KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import KeyStoreError
from ttmark.shared.vault.stores.redis_connections import RedisAddress
from ttmark.shared.vault.stores.store import RecordStore

CANARY = bytes.fromhex("c0ffee00c0ffee11c0ffee22c0ffee33c0ffee44c0ffee55c0ffee66c0ffee77")
CONFIDENTIAL = [KeyEncryptionKey(CANARY), DataKey(CANARY), UnlockedVersion(1, KeyState.PRIMARY, CANARY)]


def disguises(secret: bytes) -> list[str]:
    """The forms in which a secret could show up in a text."""
    return [
        repr(secret)[2:-1],
        secret.hex(),
        secret.hex(" "),
        base64.b64encode(secret).decode().rstrip("="),
        base64.urlsafe_b64encode(secret).decode().rstrip("="),
        str(int.from_bytes(secret)),
        str(int.from_bytes(secret, "little")),
        str(list(secret))[1:-1],
    ]


def assert_absent(secret: bytes, text: str) -> None:
    for disguise in disguises(secret):
        assert disguise not in text
        assert disguise.upper() not in text.upper()


@pytest.mark.parametrize("holder", CONFIDENTIAL, ids=lambda holder: type(holder).__name__)
def test_no_way_to_write_or_copy_an_object_shows_its_secret(holder: object) -> None:
    for text in (repr(holder), str(holder), f"{holder}", f"{holder!a}", "%s" % holder, repr([holder])):  # noqa: UP031
        assert_absent(CANARY, text)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            pickle.dumps(holder, protocol)
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            duplicate(holder)
    with pytest.raises(TypeError):
        vars(holder)


async def test_an_unlocked_key_shows_no_prf_key_and_what_is_shown_has_no_field_for_a_secret(ring, profile):
    await ring.create("k", tenant="t", profile=profile)
    key = await ring.open("k")
    assert_absent(key.versions[0].prf_key, repr(key))
    with pytest.raises(TypeError):
        pickle.dumps(key)
    info: BaseModel = await ring.create("l", tenant="t", profile=profile)
    assert "secret" not in info.model_dump_json()


async def test_the_store_holds_no_secret_in_the_clear(store, ring, kek, tmp_path, profile, monkeypatch):
    monkeypatch.setattr("ttmark.shared.keys.key_codec.os.urandom", lambda count: CANARY[:count])
    await ring.create("k", tenant="t", profile=profile)
    await ring.rotate("k")
    plain, _ = await TokenRegistry(store, kek).create(tenant="t", scopes=[Scope.DETECT])
    await store.close()
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for secret in (CANARY, bytes.fromhex(plain[-64:])):
        assert secret not in written
        assert_absent(secret, written.decode("latin-1"))


async def test_errors_of_a_wrong_key_name_no_secret(store: RecordStore, profile: Profile) -> None:
    await KeyRing(store, KeyEncryptionKey(CANARY)).create("k", tenant="t", profile=profile)
    with pytest.raises(KeyStoreError) as caught:
        await KeyRing(store, KeyEncryptionKey(bytes(32))).open("k")
    assert_absent(CANARY, "".join(traceback.format_exception(caught.value)))


def test_an_address_shows_no_password() -> None:
    assert "hunter2" not in repr(RedisAddress.parse("redis://user:hunter2@example.org/1"))
