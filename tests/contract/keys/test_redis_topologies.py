"""Sentinels and a cluster, both real: the store finds the server and follows it."""

import time
from collections.abc import Callable
from typing import Any

import pytest
import redis

from tests.harness.waiting import eventually
from ttmark.shared.vault.key_store_errors import StoreUnavailable
from ttmark.shared.vault.redis_client import RedisClient
from ttmark.shared.vault.redis_connections import RedisAddress
from ttmark.shared.vault.redis_store import RedisStore
from ttmark.shared.vault.store import Stored, open_store

DATA = ("--appendonly", "no", "--save", "")


@pytest.fixture(scope="module")
def sentinel_setup(start_redis: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any, Any]:
    """A primary, its replica, and a Sentinel that watches them."""
    primary = start_redis(*DATA)
    replica = start_redis(*DATA, "--replicaof", f"127.0.0.1 {primary.port}")
    folder = tmp_path_factory.mktemp("sentinel")
    config = folder / "sentinel.conf"
    config.write_text(
        f"sentinel monitor keys 127.0.0.1 {primary.port} 1\n"
        "sentinel down-after-milliseconds keys 500\n"
        "sentinel failover-timeout keys 3000\n"
    )
    sentinel = start_redis(str(config), "--sentinel", folder=folder)
    with replica.client() as client:
        eventually(lambda: client.info("replication")["master_link_status"] == "up")
    with sentinel.client() as client:
        client.response_callbacks.clear()
        eventually(lambda: len(client.execute_command("SENTINEL", "REPLICAS", "keys")) == 1)
    return primary, replica, sentinel


async def test_an_unknown_service_and_absent_sentinels_are_one_clear_line(sentinel_setup):
    for url, reason in (
        (f"redis+sentinel://127.0.0.1:{sentinel_setup[2].port}/other", "no service of that name"),
        ("redis+sentinel://127.0.0.1:1/keys", "127.0.0.1:1"),
    ):
        store = RedisStore(RedisClient(RedisAddress.parse(url), budget_seconds=0.5))
        with pytest.raises(StoreUnavailable, match=reason) as caught:
            await store.ping()
        assert "\n" not in str(caught.value)
        await store.close()


async def test_a_replica_that_sentinels_name_by_mistake_is_not_used(
    sentinel_setup: tuple[Any, Any, Any], start_redis: Any, tmp_path_factory: Any
) -> None:
    _, replica, _ = sentinel_setup
    folder = tmp_path_factory.mktemp("stale")
    (folder / "sentinel.conf").write_text(f"sentinel monitor keys 127.0.0.1 {replica.port} 1\n")
    sentinel = start_redis(str(folder / "sentinel.conf"), "--sentinel", folder=folder)
    address = RedisAddress.parse(f"redis+sentinel://127.0.0.1:{sentinel.port}/keys")
    store = RedisStore(RedisClient(address, budget_seconds=0.5))
    with pytest.raises(StoreUnavailable, match=r"no primary|did not answer"):
        await store.get("key", "a")
    await store.close()
    sentinel.stop()  # after a while it would fail over by itself, and take a vote from the others


@pytest.mark.parametrize(
    ("password", "url", "reason"),
    [
        ("data", ":data@{at}/keys", None),
        ("watch", ":data@{at}/keys?sentinel_password=watch", None),
        ("watch", ":data@{at}/keys", "WRONGPASS|invalid"),
        ("watch", ":data@{at}/keys?sentinel_password=wrong", "WRONGPASS|invalid"),
        ("data", "{at}/keys", "[Aa]uthentication"),
    ],
    ids=["the primary's", "its own", "another one", "a wrong one", "none given"],
)
async def test_sentinels_that_ask_for_a_password(
    start_redis: Any, tmp_path: Any, password: str, url: str, reason: str | None
) -> None:
    primary = start_redis(*DATA, "--requirepass", "data")
    (tmp_path / "sentinel.conf").write_text(
        f"requirepass {password}\n"
        f"sentinel monitor keys 127.0.0.1 {primary.port} 1\n"
        "sentinel auth-pass keys data\n"
    )
    sentinel = start_redis(str(tmp_path / "sentinel.conf"), "--sentinel", folder=tmp_path)
    address = RedisAddress.parse("redis+sentinel://" + url.format(at=f"127.0.0.1:{sentinel.port}"))
    store = RedisStore(RedisClient(address, budget_seconds=0.5))
    try:
        if reason is None:
            await store.put("key", "a", b"x", expected_revision=0)
            assert await store.get("key", "a") == Stored(1, b"x")
        else:
            with pytest.raises(StoreUnavailable, match=reason) as caught:
                await store.get("key", "a")
            assert not {"data", "watch", "wrong"} & set(str(caught.value).split())
    finally:
        await store.close()


async def test_a_store_behind_sentinels_follows_a_failover(sentinel_setup: tuple[Any, Any, Any]) -> None:
    primary, replica, sentinel = sentinel_setup
    store = open_store(f"redis+sentinel://127.0.0.1:1,127.0.0.1:{sentinel.port}/keys/0")
    try:
        await store.put("key", "a", b"x", expected_revision=0)
        with replica.client() as client:
            eventually(lambda: bool(client.exists("{ttmark}:key")))
        primary.kill()
        deadline = time.monotonic() + 30
        while True:
            try:
                assert await store.put("key", "a", b"y", expected_revision=1) == 2
                break
            except StoreUnavailable:
                assert time.monotonic() < deadline
        with replica.client() as client:
            assert client.hget("{ttmark}:key", "a") == b"2:y"
    finally:
        await store.close()


@pytest.fixture(scope="module")
def cluster(start_redis: Callable[..., Any]) -> list[Any]:
    """Two nodes; the second one owns the slot of the records."""
    options = (*DATA, "--cluster-enabled", "yes", "--cluster-allow-replica-migration", "no")
    nodes = [start_redis(*options) for _ in range(2)]
    clients = [node.client() for node in nodes]
    slot = clients[0].execute_command("CLUSTER", "KEYSLOT", "{ttmark}")
    clients[0].execute_command("CLUSTER", "ADDSLOTSRANGE", 0, slot - 1, slot + 1, 16383)
    clients[1].execute_command("CLUSTER", "ADDSLOTSRANGE", slot, slot)
    clients[1].execute_command("CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
    for client in clients:
        eventually(lambda client=client: b"cluster_state:ok" in raw(client, "CLUSTER", "INFO"))
        client.close()
    return nodes


def raw(client: redis.Redis, *command: str) -> Any:
    client.response_callbacks.clear()
    return client.execute_command(*command)


async def test_a_store_on_a_cluster_finds_the_node_that_owns_its_slot(cluster: list[Any]) -> None:
    store = open_store(f"redis+cluster://127.0.0.1:1,127.0.0.1:{cluster[0].port}")
    try:
        for number, kind in enumerate(("key", "token", "replica")):
            await store.put(kind, "a", b"%d" % number, expected_revision=0)
        assert await store.get("token", "a") == Stored(1, b"1")
        assert await store.scan("key") == [("a", Stored(1, b"0"))]
    finally:
        await store.close()
    with cluster[1].client() as client:
        assert client.dbsize() == 3


async def test_a_store_follows_its_slot_to_another_node(cluster: list[Any]) -> None:
    store = open_store(f"redis+cluster://127.0.0.1:{cluster[0].port}")
    try:
        await store.put("key", "b", b"x", expected_revision=0)
        old, new = cluster[1].client(), cluster[0].client()
        slot = old.execute_command("CLUSTER", "KEYSLOT", "{ttmark}")
        new_id = raw(new, "CLUSTER", "MYID").decode()
        new.execute_command("CLUSTER", "SETSLOT", slot, "IMPORTING", raw(old, "CLUSTER", "MYID").decode())
        old.execute_command("CLUSTER", "SETSLOT", slot, "MIGRATING", new_id)
        while held := raw(old, "CLUSTER", "GETKEYSINSLOT", slot, 100):
            old.execute_command("MIGRATE", "127.0.0.1", cluster[0].port, "", 0, 5000, "KEYS", *held)
        for client in (new, old):
            client.execute_command("CLUSTER", "SETSLOT", slot, "NODE", new_id)
        assert await store.put("key", "b", b"y", expected_revision=1) == 2
        assert raw(new, "HGET", "{ttmark}:key", "b") == b"2:y"
        old.close()
        new.close()
    finally:
        await store.close()
