"""What becomes of a key's versions, and what is refused, in which words."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from itertools import product

import pytest

from tests.contract.keys.faulty_store import after, states_of
from ttmark.shared.keys.held_keys import KeyState
from ttmark.shared.keys.key_records import KeyRecord, VersionRecord
from ttmark.shared.keys.keyring import KeyRing, disabled, promoted, retired
from ttmark.shared.schemas.profile import Profile
from ttmark.shared.vault.stores.key_store_errors import InvalidName, InvalidTransition, KeyExists, NoSuchKey

NOW = datetime(2026, 11, 22, tzinfo=UTC)
Call = Callable[[KeyRing, Profile], Awaitable[object]]


@pytest.mark.parametrize("step", [promoted, retired, disabled])
def test_each_step_is_that_of_a_plain_model(profile: Profile, step: Callable[..., KeyRecord]) -> None:
    operation = {promoted: "promote", retired: "retire", disabled: "disable"}[step]
    made = {"created_at": NOW, "changed_at": NOW, "epoch": 1, "sealed_secret": ""}
    for states in product(KeyState, repeat=3):
        versions = tuple(VersionRecord(version=n, state=state, **made) for n, state in enumerate(states, 1))
        record = KeyRecord(key_id="k", tenant="t", profile=profile, created_at=NOW, versions=versions)
        for version in (1, 2, 3):
            expected = after(states_of(record), operation, version)
            if expected is None:
                with pytest.raises(InvalidTransition):
                    step(record, version, NOW)
            else:
                assert states_of(step(record, version, NOW)) == expected


@pytest.mark.parametrize("change", ["promote", "retire", "disable"])
async def test_repeating_a_change_changes_nothing(ring: KeyRing, profile: Profile, change: str) -> None:
    await ring.create("k", tenant="t", profile=profile)
    await ring.rotate("k")
    once = await getattr(ring, change)("k", 2)
    assert await getattr(ring, change)("k", 2) == once


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda ring, profile: ring.create("k", tenant="other", profile=profile), KeyExists, "key k exists"),
        (lambda ring, _: ring.open("nope"), NoSuchKey, "there is no key nope"),
        (lambda ring, _: ring.promote("k", 7), NoSuchKey, "key k has no version 7"),
        (lambda ring, _: ring.promote("k", 1), InvalidTransition, "version 1 of k is active: only a pending"),
        (lambda ring, _: ring.retire("k", 2), InvalidTransition, "promote another version first"),
        (lambda ring, _: ring.rotate("k"), InvalidTransition, "version 3 of k is pending"),
    ],
)
async def test_what_cannot_be_done_says_why(
    ring: KeyRing, profile: Profile, call: Call, error: type[Exception], said: str
) -> None:
    await ring.create("k", tenant="t", profile=profile)
    await ring.rotate("k")
    await ring.promote("k", 2)
    await ring.rotate("k")
    with pytest.raises(error, match=said):
        await call(ring, profile)


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
