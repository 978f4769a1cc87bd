"""A lookup that is cancelled never leaves its reply to somebody else (as in CVE-2023-28859)."""

import asyncio
import random
from typing import Any

import pytest

from tests.contract.keys.conftest import FaultProxy
from ttmark.services.settings.store import open_store
from ttmark.shared.vault.stores.redis_client import RedisClient
from ttmark.shared.vault.stores.redis_connections import RedisAddress
from ttmark.shared.vault.stores.redis_store import RedisStore
from ttmark.shared.vault.stores.store import RecordStore

pytestmark = pytest.mark.long

RECORDS = 50


async def fill(store: RecordStore) -> None:
    for number in range(RECORDS):
        await store.put("key", f"k{number}", f"payload of k{number}".encode(), expected_revision=0)


async def look_up(store: RecordStore, record_id: str, cancel_after: float | None) -> str | None:
    """None when the lookup was cancelled or right, else what came in place of the record."""
    lookup = asyncio.create_task(store.get("key", record_id))
    try:
        stored = await asyncio.wait_for(lookup, cancel_after)
    except TimeoutError:
        return None
    assert stored is not None
    right = stored.payload == f"payload of {record_id}".encode()
    return None if right else f"{record_id} got {stored.payload!r}"


async def cancelled_lookups(server: Any, count: int) -> tuple[int, int]:
    """Cancels a good half of `count` lookups through a slow proxy; how many were mixed up and cancelled."""
    generator = random.Random(7)
    direct = open_store(server.url)
    await fill(direct)
    await direct.close()
    mixed_up = cancelled = 0
    async with FaultProxy(server.port) as proxy:
        proxy.delay_seconds = 0.002
        proxy.slice_bytes = 7
        # A machine that is busy otherwise must not run into the time limits.
        store = RedisStore(RedisClient(RedisAddress.parse(proxy.url), reply_seconds=60, budget_seconds=120))
        for begin in range(0, count, 100):
            lookups = []
            for _ in range(min(100, count - begin)):
                timeout = generator.choice([None, generator.uniform(0, 0.02)])
                cancelled += timeout is not None
                lookups.append(look_up(store, f"k{generator.randrange(RECORDS)}", timeout))
            mixed_up += sum(result is not None for result in await asyncio.gather(*lookups))
        await store.close()
    return mixed_up, cancelled


@pytest.mark.parametrize("count", [1_000, pytest.param(200_000, marks=pytest.mark.slow)])
async def test_no_reply_is_mixed_up_when_lookups_are_cancelled(redis_server: Any, count: int) -> None:
    mixed_up, cancelled = await cancelled_lookups(redis_server, count)
    assert mixed_up == 0
    assert cancelled > 0.45 * count
