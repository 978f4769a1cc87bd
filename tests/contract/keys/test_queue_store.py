"""What every store of a queue has to do, run against each of them on the real thing."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ttmark.detect_service.queue.queue_store import KeptItem, QueueFull, QueueStore
from ttmark.services.detection_stores import open_queue_store


@pytest.fixture
async def queue(opened: Any) -> QueueStore:
    return opened(open_queue_store)


@pytest.fixture
async def other(opened: Any) -> QueueStore:
    return opened(open_queue_store)


def item(item_id: str, tenant: str = "a", added_at: float = 1.5, expires_at: float = 9.5) -> KeptItem:
    return KeptItem(item_id, tenant, "new", 1, b"\x00\xff" * 20, added_at, expires_at)


async def test_what_is_added_is_read_by_its_tenant_alone_and_added_once(queue, other):
    assert await queue.add(item("1"), 5)
    assert not await other.add(replace(item("1"), sealed=b"other"), 5)
    assert await other.get("a", "1") == item("1")
    assert await other.get("b", "1") is None
    assert await queue.add(item("1", "b"), 5)
    assert not await other.delete("b", "2")
    assert await other.delete("b", "1")
    assert not await other.delete("b", "1")
    assert await queue.get("a", "1") == item("1")


async def test_of_changes_at_once_one_is_written_and_each_stands_on_the_one_before(queue, other):
    await queue.add(item("1"), 5)
    for version in range(2, 6):
        tries = [
            replace(item("1"), state=state, version=version, sealed=state.encode(), expires_at=9.0 + version)
            for state in ("looked_at", "decided", "appealed")
        ]
        written = await asyncio.gather(*(s.replace(t) for t in tries for s in (queue, other)))
        assert sum(written) == 1
        assert await queue.get("a", "1") == tries[written.index(True) // 2]
    assert not await queue.replace(replace(item("1"), version=5))
    assert not await queue.replace(replace(item("2"), version=2))
    assert await queue.get("a", "2") is None


async def test_items_are_listed_by_state_the_newest_first_in_pages(queue, other):
    for number in range(5):
        await queue.add(item(f"{number}", added_at=number + 0.5), 9)
    await queue.add(item("0", "b"), 9)
    await queue.replace(replace(item("2", added_at=2.5), state="decided", version=2))
    await queue.replace(replace(item("3", added_at=3.5), state="decided", version=2))
    await queue.replace(replace(item("3", added_at=3.5), state="appealed", version=3))

    async def listed(*asked: object) -> list[str]:
        return [found.item_id for found in await other.listed("a", *asked)]  # type: ignore[arg-type]

    assert await listed(None, 0, 3) == ["4", "3", "2"]
    assert await listed(None, 3, 3) == ["1", "0"]
    assert await listed("new", 0, 9) == ["4", "1", "0"]
    assert await listed("decided", 0, 9) == ["2"]
    assert await listed("appealed", 0, 9) == ["3"]
    await other.delete("a", "3")
    assert await listed("appealed", 0, 9) == []
    assert await listed(None, 0, 9) == ["4", "2", "1", "0"]


async def test_a_tenant_has_no_more_items_than_it_may(queue: QueueStore, other: QueueStore) -> None:
    adding = [s.add(item(f"{number}"), 3) for number in range(6) for s in (queue, other)]
    results = await asyncio.gather(*adding, return_exceptions=True)
    assert sum(result is True for result in results) == 3
    assert any(isinstance(result, QueueFull) for result in results)
    assert await queue.add(item("1", "b"), 3)
    (first, *_) = await queue.listed("a", None, 0, 9)
    await queue.delete("a", first.item_id)
    assert await queue.add(item("9"), 3)


async def test_items_are_forgotten_when_their_time_is_over_since_the_last_change(queue, other):
    await queue.add(item("1", expires_at=5.0), 3)
    await queue.add(item("2", expires_at=5.0), 3)
    await queue.add(item("1", "b", expires_at=5.0), 3)
    await queue.replace(replace(item("2"), state="decided", version=2, expires_at=8.0))
    assert await other.expire(4.9) == 0
    assert await other.expire(5.0) == 2
    assert [found.item_id for found in await queue.listed("a", None, 0, 9)] == ["2"]
    assert await queue.listed("a", "new", 0, 9) == []
    assert await other.expire(8.0) == 1
    for number in range(3):
        await queue.add(item(f"{number}"), 3)  # into the room that was given back
