"""The life cycle of a key's versions."""

import asyncio

import pytest

from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.keys.pool import derive_prf_keys
from ttmark.shared.keys.records import KeyInfo
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.key_store_errors import (
    InvalidName,
    InvalidTransition,
    KeyExists,
    KeyNotFound,
)


def states(info: KeyInfo) -> list[str]:
    return [version.state.value for version in info.versions]


async def test_a_new_key_has_one_version_and_its_id_is_taken_once(ring: KeyRing, profile: Profile) -> None:
    info = await ring.create("k", tenant="t", profile=profile)
    assert (info.key_id, info.tenant, info.profile, info.epoch) == ("k", "t", profile, 1)
    assert states(info) == ["primary"]
    assert await ring.list() == [info]
    with pytest.raises(KeyExists, match="k"):
        await ring.create("k", tenant="other", profile=profile)


async def test_rotation_adds_a_pending_version_promotion_makes_it_primary_and_the_primary_is_not_retired(
    ring: KeyRing, profile: Profile
) -> None:
    await ring.create("k", tenant="t", profile=profile)
    assert states(await ring.rotate("k")) == ["primary", "pending"]
    assert states(await ring.promote("k", 2)) == ["active", "primary"]
    assert states(await ring.retire("k", 1)) == ["retired", "primary"]
    with pytest.raises(InvalidTransition, match="promote another version first"):
        await ring.retire("k", 2)


async def test_every_version_keeps_its_own_prf_key_through_all_changes(ring, profile):
    await ring.create("k", tenant="t", profile=profile)
    first = (await ring.open("k")).versions[0].prf_key
    await ring.rotate("k")
    await ring.promote("k", 2)
    await ring.disable("k", 1)
    opened = await ring.open("k")
    assert opened.versions[0].prf_key == first
    assert opened.versions[1].prf_key != first
    assert len(first) == 16


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


async def test_a_second_pending_version_is_refused(ring: KeyRing, profile: Profile) -> None:
    await ring.create("k", tenant="t", profile=profile)
    await ring.rotate("k")
    with pytest.raises(InvalidTransition, match="version 2 of k is pending"):
        await ring.rotate("k")


@pytest.mark.parametrize("change", ["promote", "retire", "disable"])
async def test_repeating_a_change_changes_nothing(ring: KeyRing, profile: Profile, change: str) -> None:
    await ring.create("k", tenant="t", profile=profile)
    await ring.rotate("k")
    once = await getattr(ring, change)("k", 2)
    assert await getattr(ring, change)("k", 2) == once


async def test_disabling_the_primary_leaves_none_until_another_is_promoted(ring, profile):
    await ring.create("k", tenant="t", profile=profile)
    await ring.disable("k", 1)
    opened = await ring.open("k")
    assert opened.primary is None
    assert opened.detectable == ()
    await ring.rotate("k")
    assert states(await ring.promote("k", 2)) == ["disabled", "primary"]


@pytest.mark.parametrize("state", ["active", "retired", "disabled"])
async def test_only_a_pending_version_is_promoted(ring: KeyRing, profile: Profile, state: str) -> None:
    await ring.create("k", tenant="t", profile=profile)
    await ring.rotate("k")
    await ring.promote("k", 2)
    if state == "retired":
        await ring.retire("k", 1)
    if state == "disabled":
        await ring.disable("k", 1)
    with pytest.raises(InvalidTransition, match=state):
        await ring.promote("k", 1)


@pytest.mark.parametrize("name", ["", "A", "a b", "a\n", "-a", "a/b", "a" * 64, "ä", "a\0"])
async def test_a_bad_name_is_refused(ring: KeyRing, profile: Profile, name: str) -> None:
    with pytest.raises(InvalidName):
        await ring.create(name, tenant="t", profile=profile)
    with pytest.raises(InvalidName):
        await ring.create("k", tenant=name, profile=profile)


async def test_what_does_not_exist_is_not_found(ring: KeyRing, profile: Profile) -> None:
    with pytest.raises(KeyNotFound, match="there is no key nope"):
        await ring.open("nope")
    await ring.create("k", tenant="t", profile=profile)
    with pytest.raises(KeyNotFound, match="no version 7"):
        await ring.promote("k", 7)


async def test_keys_are_listed_by_tenant(ring: KeyRing, profile: Profile) -> None:
    for key_id, tenant in (("b", "x"), ("a", "x"), ("c", "y")):
        await ring.create(key_id, tenant=tenant, profile=profile)
    assert [info.key_id for info in await ring.list()] == ["a", "b", "c"]
    assert [info.key_id for info in await ring.list(tenant="x")] == ["a", "b"]


async def test_of_changes_at_once_each_is_applied_after_the_other(store, kek, profile):
    rings = [KeyRing(store, kek) for _ in range(5)]
    await rings[0].create("k", tenant="t", profile=profile)
    results = await asyncio.gather(*(ring.rotate("k") for ring in rings), return_exceptions=True)
    assert sum(isinstance(result, KeyInfo) for result in results) == 1
    assert sum(isinstance(result, InvalidTransition) for result in results) == 4
    assert states(await rings[0].info("k")) == ["primary", "pending"]


def test_two_profiles_never_share_a_prf_key() -> None:
    profiles = [
        Profile.model_validate({"scheme": "synthid", "block_size": size, "tokenizer_fingerprint": digit * 64})
        for size in (1, 2)
        for digit in "ab"
    ]
    assert len({derive_prf_keys(bytes(32), profile) for profile in profiles}) == len(profiles)
