"""TLS and the three roles of `deploy/redis`, on a server that runs with exactly those files."""

import asyncio
import re
import secrets
import subprocess
from contextlib import suppress

import psutil
import pytest
import redis

from tests.contract.keys.faulty_store import KEK, PROFILE
from tests.contract.keys.secured_redis import DEPLOY, SecuredRedis
from ttmark.services.settings.store import open_store
from ttmark.shared.access.scopes import Scope
from ttmark.shared.access.tokens import TokenRegistry
from ttmark.shared.keys.key_cache import KeyCache
from ttmark.shared.keys.keyring import KeyRing
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.store import RecordStore

SIGNED_OFF = '1:{"known":{},"reported_at":"2020-01-01T00:00:00Z","serves_until":"2020-01-01T00:00:00Z"}'
ROLES = ("operator", "gen", "detect")
SERVICES = ("gen", "detect")
NEEDS_NO_PERMISSION = {"auth", "hello", "quit", "reset"}
COMMON = {"ping", "hget", "hgetall", "hset", "watch", "unwatch", "multi", "exec", "publish", "role"}
COMMON |= {"cluster|slots", "cluster|keyslot"}
NEWER = {"waitaof", "client|setinfo"}  # since Redis 7.2
ALLOWED = {
    "operator": COMMON,
    "gen": COMMON | {"subscribe", "incrby", "pexpire", "hincrby"},
    "detect": COMMON
    | {"subscribe", "incrby", "pexpire", "eval", "bitfield", "getrange", "setrange", "hincrby"}
    | {"get", "del", "exists", "hmget", "hexists", "hsetnx", "hdel", "hstrlen", "sadd", "srem", "scard"}
    | {"zadd", "zrem", "zscore", "zrange", "zrangebyscore", "xadd", "xlen", "xack", "xdel", "xclaim"}
    | {"xautoclaim", "xpending", "xreadgroup", "xgroup|create"},
}


def commands_of(client: redis.Redis) -> dict[str, int]:
    """Every command and subcommand of the server, with the number of arguments that it needs at least."""
    client.response_callbacks.clear()
    needed: dict[str, int] = {}
    names = client.execute_command("COMMAND", "LIST")
    for entry in client.execute_command("COMMAND", "INFO", *names):
        # A container without one of its subcommands is an error to everyone, and no command.
        for name, arity in [sub[:2] for sub in entry[9]] or [entry[:2]]:
            needed[name.decode()] = abs(arity) - 1 - name.count(b"|")
    return needed


def is_permitted(client: redis.Redis, name: str, arguments: list[str]) -> bool:
    """Runs the command and tells whether the server let it run, be it with an error."""
    client.response_callbacks.clear()
    try:
        client.execute_command(*name.upper().split("|"), *arguments)
    except redis.exceptions.NoPermissionError as error:
        return "run the" not in str(error)
    except redis.ResponseError as error:
        if "command not allowed" in str(error):  # MODULE and DEBUG are closed to everyone
            return False
    except redis.RedisError:
        pass
    client.connection_pool.disconnect()
    return True


@pytest.mark.parametrize("role", ROLES)
def test_a_role_runs_its_own_commands_and_no_other_of_command_list(secured, shared_redis, role):
    with shared_redis.client() as client:
        needed = commands_of(client)
    assert len(needed) > 300
    with secured.client(role) as client:
        permitted = {
            name
            for name, count in needed.items()
            if name not in NEEDS_NO_PERMISSION and is_permitted(client, name, ["{ttmark}:key"] * count)
        }
    assert permitted == ALLOWED[role] | (NEWER if secured.confirms_writes else set())


NAMES = ["key", "token", "replica", "audit", "volume", "count:x", "job:x", "jobs:x", "other"]


@pytest.mark.parametrize("role", ROLES)
def test_a_role_reaches_only_its_own_records(secured: SecuredRedis, role: str) -> None:
    records = {"key", "token", "replica", "audit"}
    reads = {
        "operator": records | {"volume"},
        "gen": records | {"volume", "count:x"},
        "detect": records | {"count:x", "job:x", "jobs:x"},
    }
    writes = {
        "operator": {"key", "token", "audit"},
        "gen": {"replica", "audit", "volume", "count:x"},
        "detect": {"replica", "audit", "count:x", "job:x", "jobs:x"},
    }

    def is_let(client: redis.Redis, *command: str) -> bool:
        try:
            client.execute_command(*command)
        except redis.exceptions.NoPermissionError:
            return False
        return True

    with secured.client(role) as client:
        read = {name for name in NAMES if is_let(client, "HGET", f"{{ttmark}}:{name}", "f")}
        written = {name for name in NAMES if is_let(client, "HSET", f"{{ttmark}}:{name}", "f", "1")}
        for name in written - {"volume"}:
            client.execute_command("HSET", f"{{ttmark}}:{name}", "f", SIGNED_OFF)
    assert (read, written) == (reads[role], writes[role])


@pytest.mark.parametrize("role", ROLES)
def test_a_role_hears_of_changes_and_of_nothing_else(secured: SecuredRedis, role: str) -> None:
    with secured.client(role) as client:
        client.publish("{ttmark}:changes", "key")
        with pytest.raises(redis.exceptions.NoPermissionError):
            client.publish("other", "key")


def test_the_default_user_and_a_wrong_password_do_not_get_in(secured: SecuredRedis) -> None:
    ca = str(secured.folder / "ca.crt")
    for credentials in (
        {},
        {"password": "x"},
        {"username": "operator", "password": "x"},
        {"username": "gen"},
    ):
        with (
            redis.Redis(port=secured.port, ssl=True, ssl_ca_certs=ca, retry=None, **credentials) as client,
            pytest.raises((redis.AuthenticationError, redis.ConnectionError)),
        ):
            client.ping()


async def open_refused(url: str) -> str:
    store = open_store(url)
    with pytest.raises(StoreUnavailable) as caught:
        await store.ping()
    await store.close()
    return str(caught.value)


async def test_a_server_that_the_ca_did_not_sign_is_refused(secured, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    subprocess.run([DEPLOY / "provision.sh", other, "127.0.0.1"], check=True)  # noqa: ASYNC221
    url = secured.url("gen").replace(str(secured.folder / "ca.crt"), str(other / "ca.crt"))
    assert "certificate verify failed" in await open_refused(url)
    assert "certificate verify failed" in await open_refused(secured.url("gen").partition("?")[0])
    assert "localhost" in await open_refused(secured.url("gen").replace("127.0.0.1", "localhost"))


async def test_a_wrong_password_is_refused_at_once_and_not_repeated(secured: SecuredRedis) -> None:
    url = re.sub(r":[0-9a-f]{64}@", ":hunter2@", secured.url("gen"))
    message = await open_refused(url)
    assert "refused" in message
    assert "hunter2" not in message


@pytest.mark.parametrize("asks", [False, True], ids=["idle", "asking"])
async def test_a_connection_is_closed_at_once_though_the_server_stands_still(secured, asks):
    store = open_store(secured.url("gen"))
    await store.ping()
    secured.server.pause()
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await (store.ping() if asks else store.close())
        await store.close()
        await asyncio.sleep(0)  # the loop closes what it was told to
        connections = psutil.Process().net_connections()
        assert secured.port not in {each.raddr.port for each in connections if each.raddr}
    finally:
        secured.server.resume()


async def test_each_role_can_do_its_work_and_a_service_cannot_change_keys_or_tokens(secured):
    key_id = f"k{secrets.token_hex(4)}"
    stores = {role: open_store(secured.url(role)) for role in ROLES}
    try:
        operator = KeyRing(stores["operator"], KEK)
        await operator.create(key_id, tenant="t", profile=PROFILE)
        await operator.rotate(key_id)
        await operator.promote(key_id, 2)
        await operator.export(key_id)
        plain, _ = await TokenRegistry(stores["operator"], KEK).create(tenant="t", scopes=[Scope.DETECT])
        for role in SERVICES:
            await serve_as(stores[role], plain, key_id)
        assert await stores["gen"].add({f"{key_id}/3": 5}) == {f"{key_id}/3": 5}
        assert (await stores["operator"].counts())[f"{key_id}/3"] == 5
        for role in ("operator", "detect"):
            with pytest.raises(StoreUnavailable, match="refused"):
                await stores[role].add({f"{key_id}/3": 5})
    finally:
        for store in stores.values():
            await store.close()


async def serve_as(store: RecordStore, plain: str, key_id: str) -> None:
    ring = KeyRing(store, KEK)
    cache = KeyCache(ring)
    await cache.start()
    assert cache.ready
    await cache.stop()
    await TokenRegistry(store, KEK).authenticate(plain)
    with pytest.raises(StoreUnavailable, match="refused"):
        await ring.rotate(key_id)
    with pytest.raises(StoreUnavailable, match="refused"):
        await ring.export(key_id)
    with pytest.raises(StoreUnavailable, match="refused"):
        await TokenRegistry(store, KEK).create(tenant="t", scopes=[Scope.DETECT])
