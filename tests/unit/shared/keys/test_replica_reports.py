"""Two-phase rotation: no promotion before every running replica knows the version."""

import re
from datetime import timedelta
from typing import Any

import pytest

from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.replica_reports import ReplicaReporter
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.kek import KeyEncryptionKey
from ttmark.shared.vault.stores.key_store_errors import ReplicasBehind
from ttmark.shared.vault.stores.store import RecordStore, Stored


@pytest.fixture
async def ring(store: RecordStore, kek: KeyEncryptionKey, clock: Any, profile: Profile) -> KeyRing:
    ring = KeyRing(store, kek, now=clock.now)
    await ring.create("k", tenant="t", profile=profile)
    return ring


def replica(store: RecordStore, ring: KeyRing, clock: Any, name: str, max_age: float = 900) -> KeyCache:
    reporter = ReplicaReporter(store, name, max_age_seconds=max_age, now=clock.now)
    return KeyCache(ring, refresh_seconds=3600, max_age_seconds=max_age, reporter=reporter)


async def test_a_replica_that_stopped_in_order_does_not_count(store, ring, clock):
    cache = replica(store, ring, clock, "gen-1")
    await cache.start()
    await ring.rotate("k")
    await cache.stop()
    assert not cache.ready  # the keys are forgotten
    await ring.promote("k", 2)


async def test_a_silent_replica_counts_until_its_keys_are_too_old_to_be_served(store, ring, clock):
    await replica(store, ring, clock, "gen-1", max_age=900).refresh()
    await ring.rotate("k")
    clock.seconds += 59
    with pytest.raises(ReplicasBehind, match="not known yet to gen-1:"):
        await ring.promote("k", 2)
    clock.seconds += 840
    until = clock.now().replace(microsecond=0) + timedelta(seconds=1)
    silence = f"gen-1 (silent for 14 min, counts until {until:%Y-%m-%d %H:%M} UTC):"
    with pytest.raises(ReplicasBehind, match=re.escape(silence)):
        await ring.promote("k", 2)
    clock.seconds += 1
    await ring.promote("k", 2)


async def test_a_promotion_that_took_effect_is_repeated_without_asking_the_replicas(store, ring, clock):
    await ring.rotate("k")
    await ring.promote("k", 2)
    await ReplicaReporter(store, "late", max_age_seconds=900, now=clock.now).report({})
    await ring.promote("k", 2)


async def test_a_replica_that_starts_again_under_its_name_replaces_its_report(store, ring, clock):
    for _ in range(3):
        await replica(store, ring, clock, "gen-1").refresh()
    assert len(await store.scan("replica")) == 1


async def test_a_report_that_cannot_be_read_blocks_a_promotion(store: RecordStore, ring: KeyRing) -> None:
    await ring.rotate("k")
    await store.put("replica", "odd", b"nonsense", expected_revision=0)
    with pytest.raises(ReplicasBehind, match="odd"):
        await ring.promote("k", 2)
    assert await store.get("replica", "odd") == Stored(1, b"nonsense")
