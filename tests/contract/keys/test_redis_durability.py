"""A change is acknowledged when it is on disk, or the server is refused, or the operator is warned."""

import logging
from typing import Any

import pytest

from ttmark.services.settings.store import open_store
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.store import RecordStore, Stored

IN_MEMORY = ("--appendonly", "no", "--save", "")


@pytest.fixture
def newer_redis(redis_server: Any) -> Any:
    if not redis_server.confirms_writes:
        pytest.skip("this redis-server is older than 7.2 and has no WAITAOF")
    return redis_server


async def put_once(url: str) -> tuple[RecordStore, int]:
    store = open_store(url)
    try:
        return store, await store.put("key", "a", b"x", expected_revision=0)
    finally:
        await store.close()


async def test_a_demanded_confirmation_is_given_by_a_server_with_an_append_only_file(newer_redis):
    assert (await put_once(f"{newer_redis.url}?durability=aof"))[1] == 1


async def test_a_demanded_confirmation_by_a_replica_that_is_not_there_never_comes(newer_redis: Any) -> None:
    with pytest.raises(StoreUnavailable, match="not confirmed on disk"):
        await put_once(f"{newer_redis.url}?durability=aof&replicas=1")


async def test_a_server_that_cannot_confirm_is_refused_when_the_url_demands_it(start_redis: Any) -> None:
    server = start_redis(*IN_MEMORY)
    with pytest.raises(StoreUnavailable, match=r"needs Redis 7\.2 and appendonly yes"):
        await put_once(f"{server.url}?durability=aof")


async def test_without_the_demand_the_operator_is_warned_once(start_redis, caplog):
    server = start_redis(*IN_MEMORY)
    store = open_store(server.url)
    with caplog.at_level(logging.WARNING):
        for revision in range(3):
            await store.put("key", "a", b"%d" % revision, expected_revision=revision)
    assert await store.get("key", "a") == Stored(3, b"2")
    await store.close()
    assert sum("may lose acknowledged changes" in message for message in caplog.messages) == 1
