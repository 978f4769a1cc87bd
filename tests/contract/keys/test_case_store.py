"""What every store of cases has to do, run against each of them on the real thing."""

import asyncio
from typing import Any

import pytest

from ttmark.detect_service.cases.case_store import (
    CaseRoom,
    CaseStore,
    CaseStoreFull,
    KeptCase,
    TenantStoreFull,
)
from ttmark.services.detection_stores import open_case_store

ROOM = CaseRoom(of_tenant=1_000, of_all=1_500)


@pytest.fixture
async def cases(opened: Any) -> CaseStore:
    return opened(open_case_store)


@pytest.fixture
async def other(opened: Any) -> CaseStore:
    return opened(open_case_store)


def case(case_id: str, tenant: str = "a", size: int = 400, expires_at: float = 9.5) -> KeptCase:
    return KeptCase(case_id, tenant, b"\x00\xff" * (size // 2), expires_at)


async def test_what_is_kept_is_read_by_its_tenant_alone(cases: CaseStore, other: CaseStore) -> None:
    await cases.keep(case("1"), ROOM)
    assert await other.get("a", "1") == case("1")
    assert await other.get("b", "1") is None
    assert await other.get("a", "2") is None
    assert not await other.delete("b", "1")
    assert await cases.get("a", "1") is not None


async def test_what_is_deleted_is_gone_and_gives_its_room_back(cases: CaseStore, other: CaseStore) -> None:
    for _ in range(5):
        await cases.keep(case("1", size=900), ROOM)
        assert await other.delete("a", "1")
        assert not await other.delete("a", "1")
        assert await cases.get("a", "1") is None


async def test_keeping_again_changes_nothing(cases: CaseStore) -> None:
    for _ in range(5):
        await cases.keep(case("1", size=600), ROOM)
    await cases.keep(case("2", size=400), ROOM)
    assert await cases.get("a", "1") == case("1", size=600)


async def test_a_greedy_tenant_fills_its_own_room_and_no_other_s(cases: CaseStore) -> None:
    await cases.keep(case("1", size=600), ROOM)
    with pytest.raises(TenantStoreFull):
        await cases.keep(case("2", size=402), ROOM)
    await cases.keep(case("3", size=400), ROOM)
    assert await cases.get("a", "2") is None
    await cases.keep(case("4", "b", size=500), ROOM)
    with pytest.raises(CaseStoreFull):
        await cases.keep(case("5", "b", size=2), ROOM)


async def test_room_is_never_exceeded_by_many_at_once(cases: CaseStore, other: CaseStore) -> None:
    kept = [store.keep(case(f"{number}", size=300), ROOM) for number in range(6) for store in (cases, other)]
    await asyncio.gather(*kept, return_exceptions=True)
    found = [await cases.get("a", str(number)) for number in range(6)]
    assert sum(one is not None for one in found) == 3


async def test_cases_are_forgotten_when_their_time_is_over(cases: CaseStore, other: CaseStore) -> None:
    await cases.keep(case("1", expires_at=5.0), ROOM)
    await cases.keep(case("2", expires_at=6.0), ROOM)
    await cases.keep(case("3", "b", expires_at=5.0), ROOM)
    assert await other.expire(4.9) == 0
    assert await other.expire(5.0) == 2
    assert await cases.get("a", "1") is None
    assert await cases.get("a", "2") == case("2", expires_at=6.0)
    assert await cases.expire(5.0) == 0
    await cases.keep(case("4", size=600), ROOM)  # into the room that was given back
