"""What every record store has to do, run against each of them on the real thing."""

import asyncio
import itertools
from typing import Any

import pytest

from ttmark.services.settings.store import open_store
from ttmark.shared.vault.stores.key_store_errors import RevisionConflict
from ttmark.shared.vault.stores.store import RecordStore, Stored


async def test_what_was_written_is_read_back_byte_for_byte_and_at_once_by_others(store, opened):
    await store.ping()
    assert await store.get("key", "a") is None
    assert await store.scan("key") == []
    payload, other = bytes(range(256)) * 100, opened(open_store)
    for name in ("b", "c", "a"):
        assert await store.put("key", name, payload, expected_revision=0) == 1
    await store.put("token", "a", b"token", expected_revision=0)
    assert await other.get("key", "a") == Stored(1, payload)
    assert await other.scan("key") == [(name, Stored(1, payload)) for name in ("a", "b", "c")]
    assert await other.scan("token") == [("a", Stored(1, b"token"))]


@pytest.mark.parametrize("expected", [0, 2, 7])
async def test_a_change_from_another_revision_is_refused_and_changes_nothing(store, expected):
    await store.put("key", "a", b"first", expected_revision=0)
    with pytest.raises(RevisionConflict):
        await store.put("key", "a", b"second", expected_revision=expected)
    assert await store.get("key", "a") == Stored(1, b"first")
    with pytest.raises(RevisionConflict):
        await store.put("key", "absent", b"x", expected_revision=3)
    assert await store.get("key", "absent") is None


async def test_repeating_a_change_that_took_effect_succeeds(store: RecordStore) -> None:
    await store.put("key", "a", b"same", expected_revision=0)
    assert await store.put("key", "a", b"same", expected_revision=0) == 1
    assert await store.get("key", "a") == Stored(1, b"same")


async def test_of_many_changes_at_once_exactly_one_wins(store: RecordStore, opened: Any) -> None:
    other = opened(open_store)
    puts = [(store, other)[i % 2].put("key", "a", b"%d" % i, expected_revision=0) for i in range(20)]
    results = await asyncio.gather(*puts, return_exceptions=True)
    winners = [i for i, result in enumerate(results) if result == 1]
    assert len(winners) == 1
    assert all(isinstance(result, RevisionConflict) for result in results if result != 1)
    assert await store.get("key", "a") == Stored(1, b"%d" % winners[0])


async def test_a_change_is_announced_to_every_client(store: RecordStore, opened: Any) -> None:
    other = opened(open_store)
    heard: list[asyncio.Queue[str]] = [asyncio.Queue(), asyncio.Queue()]
    watchers = [
        asyncio.create_task(client.watch(queue.put_nowait))
        for client, queue in zip((store, other), heard, strict=True)
    ]
    try:
        async with asyncio.timeout(30):
            # Nobody says when a watcher has begun to listen, so the record is changed until both heard.
            for revision in itertools.count():
                await store.put("key", "a", b"%d" % revision, expected_revision=revision)
                await asyncio.sleep(0.2)
                if all(not queue.empty() for queue in heard):
                    break
        assert {queue.get_nowait() for queue in heard} == {"key"}
    finally:
        for watcher in watchers:
            watcher.cancel()
        await asyncio.gather(*watchers, return_exceptions=True)
