"""The key cache: which keys a service has in hand, and for how long."""

from typing import Any

import pytest

from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.stores.key_store_errors import RecordTampered
from ttmark.shared.vault.stores.store import RecordStore


@pytest.fixture
def cache(ring: KeyRing, clock: Any) -> KeyCache:
    return KeyCache(ring, max_age_seconds=900, monotonic=clock.monotonic)


async def test_a_cache_without_any_key_is_not_ready_and_keys_are_told_apart_by_tenant(cache, ring, profile):
    await cache.refresh()
    assert not cache.ready
    for key_id, tenant in (("b", "x"), ("a", "x"), ("c", "y")):
        await ring.create(key_id, tenant=tenant, profile=profile)
    await cache.refresh()
    assert [key.key_id for key in cache.for_tenant("x")] == ["a", "b"]
    assert cache.for_tenant("z") == []


async def test_known_keys_are_served_until_they_are_too_old(cache, ring, profile, clock):
    await ring.create("k", tenant="t", profile=profile)
    await cache.refresh()
    clock.seconds += 900
    assert cache.ready
    assert cache.get("k") is not None
    clock.seconds += 1
    assert not cache.ready
    assert cache.get("k") is None
    assert cache.for_tenant("t") == []


async def test_a_damaged_record_neither_replaces_a_known_key_nor_hides_the_others(
    cache: KeyCache, ring: KeyRing, store: RecordStore, profile: Profile
) -> None:
    for key_id in ("a", "b"):
        await ring.create(key_id, tenant="t", profile=profile)
    await cache.refresh()
    await store.put("key", "a", b"garbage", expected_revision=1)
    await ring.rotate("b")
    await cache.refresh()
    assert isinstance(cache.problems["a"], RecordTampered)
    assert [len(key.versions) for key in cache.for_tenant("t")] == [1, 2]
