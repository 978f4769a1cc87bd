"""Real Sentinels and a real cluster, with passwords and by TLS: the store finds the server and follows it."""

import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.contract.keys.conftest import RedisServer
from tests.harness.certificates import credential
from tests.harness.waiting import eventually
from ttmark.shared.vault.stores.key_store_errors import StoreUnavailable
from ttmark.shared.vault.stores.redis_client import RedisClient
from ttmark.shared.vault.stores.redis_connections import RedisAddress
from ttmark.shared.vault.stores.redis_store import RedisStore
from ttmark.shared.vault.stores.store import Stored

DATA = ("--appendonly", "no", "--save", "", "--repl-diskless-sync-delay", "0")


class Site:
    """Servers that ask for passwords and, where they speak TLS alone, for certificates of both sides."""

    def __init__(self, start: Callable[..., RedisServer], folder: Path, *, tls: bool) -> None:
        self._start, self.folder, self.tls = start, folder, tls
        self.files: dict[str, str] = {}
        self._data = ["--requirepass", "data", "--masterauth", "data"]
        self._options: list[str] = []
        if not tls:
            return
        made = credential(of_server=True)
        for name, kind, content in (
            ("ssl_ca_certs", "ca-cert", made.root),
            ("ssl_certfile", "cert", made.chain),
            ("ssl_keyfile", "key", made.key),
        ):
            path = folder / f"{kind}.pem"
            path.write_bytes(content)
            self.files[name] = str(path)
            self._options += [f"--tls-{kind}-file", str(path)]
        self._options += ["--port", "0", "--tls-replication", "yes"]

    def start(self, *arguments: str) -> RedisServer:
        return self._start(*DATA, *self._data, *arguments, *self._options, tls=self.tls)

    def watch(self, primary: RedisServer, password: str) -> RedisServer:
        """A Sentinel with a password of its own that watches the service `keys`."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))  # a test that runs again makes another
        config = folder / "sentinel.conf"
        config.write_text(
            f"requirepass {password}\n"
            f"user watcher on >{password} -@all +auth +sentinel|get-master-addr-by-name\n"
            f"sentinel monitor keys 127.0.0.1 {primary.port} 1\n"
            "sentinel auth-pass keys data\n"
            "sentinel down-after-milliseconds keys 500\n"
            "sentinel failover-timeout keys 3000\n"
        )
        return self._start(str(config), "--sentinel", *self._options, folder=folder, tls=self.tls)

    def ask(self, server: RedisServer, *command: Any, password: str = "data") -> Any:
        with server.client(password=password, ssl=self.tls, **self.files) as client:
            client.response_callbacks.clear()
            return client.execute_command(*command)

    @asynccontextmanager
    async def store(
        self, kind: str, rest: str, seconds: float = 30, **query: str
    ) -> AsyncIterator[RedisStore]:
        options = "&".join(f"{name}={value}" for name, value in (self.files | query).items())
        address = RedisAddress.parse(f"redis{'s' * self.tls}+{kind}://{rest}?{options}")
        store = RedisStore(RedisClient(address, budget_seconds=seconds))
        try:
            yield store
        finally:
            await store.close()


@pytest.fixture(scope="module", params=[False, True], ids=["in the clear", "TLS"])
def site(request: Any, start_redis: Any, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(start_redis, tmp_path_factory.mktemp("site"), tls=request.param)


@pytest.fixture(scope="module")
def watched(site: Site) -> list[RedisServer]:
    return servers_with_a_sentinel(site)


def servers_with_a_sentinel(site: Site) -> list[RedisServer]:
    """A primary, its replica, and a Sentinel with a password of its own that watches them."""
    primary = site.start()
    replica = site.start("--replicaof", f"127.0.0.1 {primary.port}")
    sentinel = site.watch(primary, "watch")
    eventually(lambda: b"master_link_status:up" in site.ask(replica, "INFO", "replication"))
    eventually(lambda: len(site.ask(sentinel, "SENTINEL", "REPLICAS", "keys", password="watch")) == 1)
    return [primary, replica, sentinel]


NOT_LET_IN = r"refused: .*([Aa]uthentication required|invalid username-password|WRONGPASS)"


@pytest.mark.parametrize(
    ("rest", "query", "reason"),
    [
        (":data@{at}/keys", {"sentinel_password": "watch"}, ""),
        (":data@{at}/keys", {"sentinel_username": "watcher", "sentinel_password": "watch"}, ""),
        (":watch@{at}/keys", {}, NOT_LET_IN),  # the Sentinel takes it, the primary does not
        (":data@{at}/keys", {}, NOT_LET_IN),
        (":data@{at}/keys", {"sentinel_password": "wrong"}, NOT_LET_IN),
        ("{at}/keys", {}, NOT_LET_IN),
        (":data@{at}/other", {"sentinel_password": "watch"}, "no service of that name"),
        (":data@127.0.0.1:1/keys", {}, "127.0.0.1:1"),
    ],
    ids=["own", "user", "only the Sentinel's", "primary's", "wrong", "none", "service", "absent"],
)
async def test_sentinels_ask_for_a_password_of_their_own(
    site: Site, watched: Any, rest: str, query: dict[str, str], reason: str
) -> None:
    at = f"127.0.0.1:{watched[2].port}"
    # Whoever is not let in hears so at once; who is down is waited for.
    seconds = 2 if reason in ("no service of that name", "127.0.0.1:1") else 30
    async with site.store("sentinel", rest.format(at=at), seconds, **query) as store:
        if not reason:
            assert await store.get("key", "none") is None
            return
        with pytest.raises(StoreUnavailable, match=reason) as caught:
            await store.ping()
    assert "\n" not in str(caught.value)
    assert not {"data", "watch", "wrong"} & set(str(caught.value).replace(":", " ").split())


async def test_sentinels_take_the_primarys_password_where_they_have_the_same(
    site: Site, watched: Any
) -> None:
    sentinel = site.watch(watched[0], "data")
    async with site.store("sentinel", f":data@127.0.0.1:{sentinel.port}/keys") as store:
        assert await store.get("key", "none") is None
    sentinel.stop()  # it would fail over too


async def test_a_replica_that_sentinels_name_by_mistake_is_not_used(site: Site, watched: Any) -> None:
    sentinel = site.watch(watched[1], "stale")
    rest = f":data@127.0.0.1:{sentinel.port}/keys"
    async with site.store("sentinel", rest, 0.5, sentinel_password="stale") as store:
        with pytest.raises(StoreUnavailable, match=r"no primary|did not answer"):
            await store.get("key", "a")
    sentinel.stop()  # after a while it would fail over by itself, and take a vote from the others


async def test_a_store_behind_sentinels_follows_a_failover(site: Site) -> None:
    # Servers of its own: a test that runs again needs a primary that lives.
    primary, replica, sentinel = servers_with_a_sentinel(site)
    rest = f":data@127.0.0.1:1,127.0.0.1:{sentinel.port}/keys/0"
    # A Sentinel whose clock stood for 2 s on a busy machine does nothing for 30 s after.
    async with site.store("sentinel", rest, 90, sentinel_password="watch") as store:
        await store.put("key", "a", b"x", expected_revision=0)
        eventually(lambda: site.ask(replica, "EXISTS", "{ttmark}:key") == 1)
        primary.kill()
        assert await store.put("key", "a", b"y", expected_revision=1) == 2
        assert site.ask(replica, "HGET", "{ttmark}:key", "a") == b"2:y"


@pytest.fixture(scope="module")
def cluster(site: Site) -> list[RedisServer]:
    return nodes_of_a_cluster(site)


def nodes_of_a_cluster(site: Site) -> list[RedisServer]:
    """Three masters, of which the second one owns the slot of the records, and its replica."""
    options = "--cluster-enabled yes --cluster-node-timeout 600 --cluster-announce-hostname localhost"
    options += " --cluster-allow-replica-migration no"
    bus = "--tls-cluster yes" if site.tls else ""
    nodes = [site.start(*options.split(), *bus.split()) for _ in range(4)]
    slot = site.ask(nodes[0], "CLUSTER", "KEYSLOT", "{ttmark}")
    site.ask(nodes[0], "CLUSTER", "ADDSLOTSRANGE", 0, slot - 1)
    site.ask(nodes[1], "CLUSTER", "ADDSLOTSRANGE", slot, slot)
    site.ask(nodes[2], "CLUSTER", "ADDSLOTSRANGE", slot + 1, 16383)
    for epoch, node in enumerate(nodes, 1):
        site.ask(node, "CLUSTER", "SET-CONFIG-EPOCH", epoch)
        site.ask(node, "CLUSTER", "MEET", "127.0.0.1", nodes[0].port)
    for node in nodes:
        eventually(lambda node=node: b"cluster_known_nodes:4" in site.ask(node, "CLUSTER", "INFO"))
        eventually(lambda node=node: b"cluster_state:ok" in site.ask(node, "CLUSTER", "INFO"))
    site.ask(nodes[3], "CLUSTER", "REPLICATE", site.ask(nodes[1], "CLUSTER", "MYID").decode())
    eventually(lambda: b"master_link_status:up" in site.ask(nodes[3], "INFO", "replication"))
    for node in nodes:  # all have heard of it
        eventually(lambda node=node: site.ask(node, "CLUSTER", "NODES").count(b"slave") == 1)
    return nodes


@pytest.mark.parametrize("names", ["ip", "hostname", "unknown-endpoint"])
async def test_a_store_on_a_cluster_finds_the_node_that_owns_its_slot(
    site: Site, cluster: list[RedisServer], names: str
) -> None:
    site.ask(cluster[0], "CONFIG", "SET", "cluster-preferred-endpoint-type", names)
    rest = f":data@127.0.0.1:1,127.0.0.1:{cluster[0].port}"
    async with site.store("cluster", rest) as store:
        for number, kind in enumerate(("key", "token", "replica")):
            await store.put(kind, names, b"%d" % number, expected_revision=0)
        assert await store.get("token", names) == Stored(1, b"1")
        assert (names, Stored(1, b"0")) in await store.scan("key")
    assert site.ask(cluster[1], "DBSIZE") == 3


async def test_who_is_not_let_in_hears_so_at_once(
    site: Site, watched: Any, cluster: Any, tmp_path: Path
) -> None:
    (tmp_path / "other.pem").write_bytes(credential().root)
    sentinel, node = (f"127.0.0.1:{server.port}" for server in (watched[2], cluster[0]))
    cases: list[tuple[str, str, dict[str, str], str]] = [("cluster", f":wrong@{node}", {}, NOT_LET_IN)]
    if site.tls:
        other, reason = {"ssl_ca_certs": str(tmp_path / "other.pem")}, "refused: .*certificate verify failed"
        cases += [
            ("cluster", f":data@{node}", other, reason),
            ("sentinel", f"{sentinel}/keys", other, reason),
        ]
    for kind, rest, query, reason in cases:
        async with site.store(kind, rest, **query) as store:
            with pytest.raises(StoreUnavailable, match=reason):
                await store.ping()


async def test_a_store_follows_a_failover_of_its_cluster_and_its_slot_to_another_node(site: Site) -> None:
    other, primary, _, replica = nodes_of_a_cluster(site)
    async with site.store("cluster", f":data@127.0.0.1:{primary.port},127.0.0.1:{other.port}") as store:
        await store.put("key", "b", b"x", expected_revision=0)
        eventually(lambda: site.ask(replica, "DBSIZE") == site.ask(primary, "DBSIZE"))
        primary.kill()
        assert await store.put("key", "b", b"y", expected_revision=1) == 2
        assert site.ask(replica, "HGET", "{ttmark}:key", "b") == b"2:y"

        slot = site.ask(replica, "CLUSTER", "KEYSLOT", "{ttmark}")
        old, new = (site.ask(node, "CLUSTER", "MYID").decode() for node in (replica, other))
        site.ask(other, "CLUSTER", "SETSLOT", slot, "IMPORTING", old)
        site.ask(replica, "CLUSTER", "SETSLOT", slot, "MIGRATING", new)
        held = site.ask(replica, "CLUSTER", "GETKEYSINSLOT", slot, 100)
        site.ask(replica, "MIGRATE", "127.0.0.1", other.port, "", 0, 5000, "AUTH", "data", "KEYS", *held)
        for node in (other, replica):
            site.ask(node, "CLUSTER", "SETSLOT", slot, "NODE", new)
        assert await store.put("key", "b", b"z", expected_revision=2) == 3
        assert site.ask(other, "HGET", "{ttmark}:key", "b") == b"3:z"
