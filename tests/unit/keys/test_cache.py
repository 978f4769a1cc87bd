"""The key cache: what a service sees of the keys while the store comes and goes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.records import UnlockedKey
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.key_store_errors import KeyStoreError, RecordTampered, StoreUnavailable
from ttmark.shared.vault.store import RecordStore


class FlakyRing(KeyRing):
    """A ring whose store can be away."""

    away = False

    async def open_all(self) -> tuple[dict[str, UnlockedKey], dict[str, KeyStoreError]]:
        if self.away:
            raise StoreUnavailable("away")
        return await super().open_all()


async def eventually(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while True:
            if condition():
                return
            await asyncio.sleep(0.01)


@pytest.fixture
def flaky(store: RecordStore, kek: KeyEncryptionKey) -> FlakyRing:
    return FlakyRing(store, kek)


@pytest.fixture
def cache(flaky: FlakyRing, clock: Any) -> KeyCache:
    return KeyCache(flaky, refresh_seconds=0.01, max_age_seconds=900, monotonic=clock.monotonic)


async def test_a_cold_start_without_the_store_is_not_ready_and_recovers_by_itself(cache, flaky, profile):
    await flaky.create("k", tenant="t", profile=profile)
    flaky.away = True
    await cache.start()
    assert not cache.ready
    assert cache.get("k") is None
    assert isinstance(cache.last_error, StoreUnavailable)
    flaky.away = False
    await eventually(lambda: cache.ready)
    assert cache.get("k") is not None
    await cache.stop()
    assert not cache.ready


async def test_a_cache_without_any_key_is_not_ready_and_keys_are_told_apart_by_tenant(cache, flaky, profile):
    await cache.refresh()
    assert not cache.ready
    for key_id, tenant in (("b", "x"), ("a", "x"), ("c", "y")):
        await flaky.create(key_id, tenant=tenant, profile=profile)
    await cache.refresh()
    assert [key.key_id for key in cache.for_tenant("x")] == ["a", "b"]
    assert cache.for_tenant("z") == []


async def test_known_keys_are_served_until_they_are_too_old(cache, flaky, profile, clock):
    await flaky.create("k", tenant="t", profile=profile)
    await cache.refresh()
    flaky.away = True
    clock.seconds += 900
    assert cache.ready
    assert cache.get("k") is not None
    clock.seconds += 1
    assert not cache.ready
    assert cache.get("k") is None
    assert cache.for_tenant("t") == []


async def test_a_damaged_record_neither_replaces_a_known_key_nor_hides_the_others(
    cache: KeyCache, flaky: FlakyRing, store: RecordStore, profile: Profile
) -> None:
    for key_id in ("a", "b"):
        await flaky.create(key_id, tenant="t", profile=profile)
    await cache.refresh()
    await store.put("key", "a", b"garbage", expected_revision=1)
    await flaky.rotate("b")
    await cache.refresh()
    assert isinstance(cache.problems["a"], RecordTampered)
    assert [len(key.versions) for key in cache.for_tenant("t")] == [1, 2]
