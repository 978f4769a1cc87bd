"""Versions of keys; `test_life_cycle_model.py` has their life cycle, over both stores."""

import pytest

from ttmark.shared.keys.key_codec import derive_prf_keys
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.key_store_errors import (
    InvalidName,
    KeyNotFound,
)


async def test_pending_primary_and_active_versions_are_detectable_newest_first(ring, profile):
    await ring.create("k", tenant="t", profile=profile)
    for version in (2, 3):
        await ring.rotate("k")
        await ring.promote("k", version)
    await ring.retire("k", 1)
    await ring.rotate("k")
    opened = await ring.open("k")
    assert [version.version for version in opened.detectable] == [4, 3, 2]
    assert opened.primary is not None
    assert opened.primary.version == 3
    await ring.disable("k", 3)
    assert [version.version for version in (await ring.open("k")).detectable] == [4, 2]
    with pytest.raises(KeyNotFound, match="there is no key nope"):
        await ring.open("nope")


@pytest.mark.parametrize("change", ["promote", "retire", "disable"])
async def test_repeating_a_change_changes_nothing(ring: KeyRing, profile: Profile, change: str) -> None:
    await ring.create("k", tenant="t", profile=profile)
    await ring.rotate("k")
    once = await getattr(ring, change)("k", 2)
    assert await getattr(ring, change)("k", 2) == once


@pytest.mark.parametrize("name", ["", "A", "a b", "a\n", "-a", "a/b", "a" * 64, "ä", "a\0"])
async def test_a_bad_name_is_refused(ring: KeyRing, profile: Profile, name: str) -> None:
    with pytest.raises(InvalidName):
        await ring.create(name, tenant="t", profile=profile)
    with pytest.raises(InvalidName):
        await ring.create("k", tenant=name, profile=profile)


async def test_keys_are_listed_by_tenant(ring: KeyRing, profile: Profile) -> None:
    for key_id, tenant in (("b", "x"), ("a", "x"), ("c", "y")):
        await ring.create(key_id, tenant=tenant, profile=profile)
    assert [info.key_id for info in await ring.list()] == ["a", "b", "c"]
    assert [info.key_id for info in await ring.list(tenant="x")] == ["a", "b"]


def test_two_profiles_never_share_a_prf_key() -> None:
    profiles = [
        Profile.model_validate({"scheme": "synthid", "block_size": size, "tokenizer_fingerprint": digit * 64})
        for size in (1, 2)
        for digit in "ab"
    ]
    assert len({derive_prf_keys(bytes(32), profile) for profile in profiles}) == len(profiles)
