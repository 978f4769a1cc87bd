"""Rewrap, backup, restore and verify."""

from typing import Any

import pytest

from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.events import Event
from ttmark.shared.keys.backup import create_backup, restore_backup, verify_store
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.kek import DataKey, KeyEncryptionKey, KeyWrapper
from ttmark.shared.vault.stores.key_store_errors import RecordRolledBack, RecordTampered, UnknownKek
from ttmark.shared.vault.stores.store import RecordStore
from ttmark.shared.vault.vault import Vault

OLD, NEW = bytes(range(32)), bytes(32)


async def fill(store: RecordStore, kek: KeyWrapper, profile: Profile) -> str:
    """Two keys, one of them rotated, and a token, whose plain text is returned."""
    ring = KeyRing(store, kek)
    await ring.create("a", tenant="t", profile=profile)
    await ring.create("b", tenant="t", profile=profile)
    await ring.rotate("a")
    plain, _ = await TokenRegistry(store, kek).create(tenant="t", scopes=[Scope.DETECT])
    return plain


@pytest.fixture
async def filled(store: RecordStore, kek: KeyEncryptionKey, profile: Profile) -> str:
    return await fill(store, kek, profile)


@pytest.fixture
async def empty_store(tmp_path: Any) -> Any:
    store = open_store(f"sqlite:///{tmp_path / 'other.db'}")
    yield store
    await store.close()


async def test_a_rewrap_opens_no_secret(store, kek, filled, monkeypatch):
    def refuse(*_: object) -> bytes:
        raise AssertionError("a secret was opened")

    monkeypatch.setattr(DataKey, "open", refuse)
    await KeyRing(store, KeyEncryptionKey(NEW, OLD)).rewrap()


class CountingKms:
    """Stands for a cloud KMS: wraps elsewhere, and every call costs."""

    def __init__(self) -> None:
        self._local = KeyEncryptionKey(OLD)
        self.calls = 0

    @property
    def kek_id(self) -> str:
        return "kms/key/1"

    async def wrap(self, data_key: bytes, associated: bytes) -> bytes:
        self.calls += 1
        return await self._local.wrap(data_key, associated)

    async def unwrap(self, kek_id: str, wrapped: bytes, associated: bytes) -> bytes:
        self.calls += 1
        assert kek_id == self.kek_id
        return await self._local.unwrap(self._local.kek_id, wrapped, associated)


async def test_a_kms_is_asked_once_per_change_and_not_at_every_refresh(store, profile):
    kms = CountingKms()
    await fill(store, kms, profile)
    ring = KeyRing(store, kms)
    await ring.open_all()
    calls = kms.calls
    for _ in range(5):
        assert len((await ring.open_all())[0]) == 2
    assert kms.calls == calls


async def test_a_backup_brings_back_what_an_empty_store_lost(store, empty_store, kek, filled):
    backup = await create_backup(store, kek)
    result = await restore_backup(empty_store, kek, backup)
    assert (result.restored, result.unchanged, result.newer) == (3, 0, 0)
    assert [key.epoch for key in await KeyRing(empty_store, kek).list()] == [2, 1]
    assert (await TokenRegistry(empty_store, kek).authenticate(filled)).tenant == "t"
    await KeyRing(empty_store, kek).promote("a", 2)
    again = await restore_backup(empty_store, kek, backup)
    assert (again.restored, again.unchanged, again.newer) == (0, 2, 1)


async def test_a_store_with_another_history_is_not_touched(store, empty_store, kek, profile, filled):
    backup = await create_backup(store, kek)
    await KeyRing(empty_store, kek).create("b", tenant="t", profile=profile)
    with pytest.raises(RecordRolledBack, match="key b"):
        await restore_backup(empty_store, kek, backup)
    assert [key.key_id for key in await KeyRing(empty_store, kek).list()] == ["b"]


async def test_a_backup_shows_nothing_and_any_damage_to_it_is_refused(store, empty_store, kek, profile):
    await KeyRing(store, kek).create("visible-name", tenant="visible-tenant", profile=profile)
    backup = await create_backup(store, kek)
    assert b"visible" not in backup
    for position in range(0, len(backup), 37):
        damaged = bytearray(backup)
        damaged[position] ^= 1
        with pytest.raises((RecordTampered, UnknownKek)):
            await restore_backup(empty_store, kek, bytes(damaged))
    for length in range(0, len(backup), 101):
        with pytest.raises(RecordTampered):
            await restore_backup(empty_store, kek, backup[:length])
    with pytest.raises(UnknownKek):
        await restore_backup(empty_store, KeyEncryptionKey(NEW), backup)
    assert await empty_store.scan("key") == []


async def test_a_damaged_store_is_not_backed_up(store, kek, filled):
    await store.put("key", "a", b"garbage", expected_revision=2)
    with pytest.raises(RecordTampered, match="key a"):
        await create_backup(store, kek)


async def test_verify_counts_what_opens_and_names_what_does_not(store, kek, filled):
    sound = await verify_store(store, kek)
    assert (sound.keys, sound.versions, sound.tokens, sound.problems) == (2, 3, 1, {})
    assert sound.keks == {kek.kek_id: 3}
    await store.put("key", "a", b"garbage", expected_revision=2)
    damaged = await verify_store(store, kek)
    assert (damaged.keys, damaged.versions) == (1, 1)
    assert list(damaged.problems) == ["key a"]


@pytest.mark.parametrize(
    "fault", ["two primaries", "gap", "other name", "secret of another version", "format"]
)
async def test_verify_notices_an_authentic_record_that_breaks_the_rules(store, kek, filled, fault):
    vault = Vault(store, kek)
    envelope = await vault.read("key", "a")
    assert envelope is not None
    body = dict(envelope.body)
    first, second = body["versions"]
    body["versions"] = {
        "two primaries": [first, {**second, "state": "primary"}],
        "gap": [first, {**second, "version": 3}],
        "other name": [first, second],
        "secret of another version": [first, {**second, "sealed_secret": first["sealed_secret"]}],
        "format": [first, {**second, "surprise": 1}],
    }[fault]
    if fault == "other name":
        body["key_id"] = "c"
    await vault.write("key", "a", body, previous=envelope)
    assert list((await verify_store(store, kek)).problems) == ["key a"]


async def test_every_change_leaves_one_line_in_the_audit_trail(store, kek, profile):
    trail: list[Event] = []
    ring = KeyRing(store, kek, audit=trail.append)
    registry = TokenRegistry(store, kek, audit=trail.append)
    await ring.create("a", tenant="t", profile=profile)
    await ring.rotate("a")
    await ring.promote("a", 2)
    await ring.retire("a", 1)
    await ring.disable("a", 2)
    _, token = await registry.create(tenant="t", scopes=[Scope.DETECT])
    await registry.revoke(token.token_id)
    assert [(event.action, event.said.get("version") or event.said.get("token_id")) for event in trail] == [
        ("key.create", 1),
        ("key.rotate", 2),
        ("key.promote", 2),
        ("key.retire", 1),
        ("key.disable", 2),
        ("token.create", token.token_id),
        ("token.revoke", token.token_id),
    ]
    assert {event.said.get("tenant") for event in trail} == {"t"}
