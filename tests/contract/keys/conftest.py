"""Both stores as fixtures: a SQLite file, and a real redis-server of the test session's own."""

import asyncio
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.contract.keys.secured_redis import SecuredRedis, start_secured
from ttmark.services.settings.store import open_store
from ttmark.shared.limits.counters import Counters, LocalCounters
from ttmark.shared.limits.redis_counters import RedisCounters
from ttmark.shared.vault.stores.redis_connections import RedisAddress
from ttmark.shared.vault.stores.store import RecordStore


def free_port() -> int:
    """A port below the ephemeral range, as is the one 10,000 above it, on which nodes of a cluster talk."""
    while True:
        port = random.SystemRandom().randrange(12_000, 22_000)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


class RedisServer:
    """A redis-server process on a loopback port that can be killed, paused and restarted."""

    def __init__(self, folder: Path, *arguments: str, port: int | None = None, tls: bool = False) -> None:
        # The variable lets another version of the server be tested than the system's.
        binary = shutil.which(os.environ.get("TTMARK_TEST_REDIS_SERVER", "redis-server"))
        if binary is None:
            pytest.fail("redis-server is missing: apt-get install redis-server", pytrace=False)
        self.port = port or free_port()
        self.folder = folder
        self._tls = tls
        self._command = [binary, *arguments, "--tls-port" if tls else "--port", str(self.port)]
        self._command += ["--bind", "127.0.0.1", "--dir", str(folder)]
        if not arguments:
            self._command += ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        return (self.folder / "redis.log").read_text()

    @property
    def confirms_writes(self) -> bool:
        """Whether the server has WAITAOF."""
        found = re.search(r"Redis version=(\d+)\.(\d+)", self.log)
        return found is not None and (int(found[1]), int(found[2])) >= (7, 2)

    def client(self, **options: Any) -> redis.Redis:
        # Each call is one try: the client's own pauses of seconds are no part of a test.
        return redis.Redis(port=self.port, socket_timeout=5, retry=Retry(NoBackoff(), 0), **options)

    def start(self) -> None:
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 10
        while not self._answers():
            if time.monotonic() > deadline or self._process.poll() is not None:
                pytest.fail(f"redis-server did not start: {self.log}")
            time.sleep(0.02)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)
        self._wait()

    def pause(self) -> None:
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def stop(self) -> None:
        self._signal(signal.SIGCONT)
        self._signal(signal.SIGTERM)
        self._wait()

    def forget_everything(self) -> None:
        """Removes what is on disk; the server must not be running."""
        shutil.rmtree(self.folder / "appendonlydir", ignore_errors=True)

    def _answers(self) -> bool:
        if self._tls:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
            return False
        try:
            with self.client() as client:
                client.ping()
        except redis.AuthenticationError:
            return True
        except redis.RedisError:
            return False
        return True

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _wait(self) -> None:
        if self._process is not None:
            self._process.wait(timeout=10)
            self._process = None


@pytest.fixture(scope="session")
def start_redis() -> Iterator[Callable[..., RedisServer]]:
    """Starts further servers, which end with the session."""
    servers: list[RedisServer] = []
    # In memory where that is possible: a busy disk makes every fsync of the tests slow.
    memory = Path("/dev/shm")
    root = Path(tempfile.mkdtemp(prefix="ttmark-redis-", dir=memory if memory.is_dir() else None))

    def start(*arguments: str, folder: Path | None = None, **options: Any) -> RedisServer:
        server = RedisServer(folder or Path(tempfile.mkdtemp(dir=root)), *arguments, **options)
        server.start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.stop()
    shutil.rmtree(root)


@pytest.fixture(scope="session")
def shared_redis(start_redis: Callable[..., RedisServer]) -> RedisServer:
    return start_redis()


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """The session's server, empty."""
    with shared_redis.client() as client:
        client.flushall()
    return shared_redis


@pytest.fixture(scope="module")
def secured(start_redis, shared_redis, tmp_path_factory) -> SecuredRedis:
    """A server with the files of `deploy/redis`: TLS and the three roles."""
    if shutil.which("openssl") is None:
        pytest.fail("openssl is missing; install it with: apt-get install openssl", pytrace=False)
    folder = tmp_path_factory.mktemp("secured")
    confirms_writes = shared_redis.confirms_writes
    return start_secured(start_redis, folder, free_port(), confirms_writes=confirms_writes)


@pytest.fixture(params=["sqlite", "redis"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each sort."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'keys.db'}"
    server: RedisServer = request.getfixturevalue("redis_server")
    return server.url


@pytest.fixture(params=["sqlite", "redis"])
def explore(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., None]:
    """Runs a state machine of hypothesis, whose `fresh_url` gives the URL of an empty store at every call."""
    number = iter(range(10**9))

    def fresh() -> str:
        if request.param == "sqlite":
            return f"sqlite:///{tmp_path / f'{next(number)}.db'}"
        server: RedisServer = request.getfixturevalue("redis_server")
        with server.client() as client:
            client.flushall()
        return server.url

    def explore(machine: type[RuleBasedStateMachine], examples: int, steps: int) -> None:
        chosen = {"max_examples": examples, "stateful_step_count": steps, "deadline": None}
        run_state_machine_as_test(
            type("Here", (machine,), {"fresh_url": staticmethod(fresh)}),
            settings=settings(**chosen, derandomize=True, suppress_health_check=list(HealthCheck)),
        )

    return explore


@pytest.fixture
async def opened(store_url: str) -> AsyncIterator[Callable[..., Any]]:
    """Opens stores of any kind there, as replicas do: each over connections of its own."""
    async with AsyncExitStack() as stack:

        def open_one(opener: Callable[..., Any], **options: Any) -> Any:
            store = opener(store_url, **options)
            stack.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
async def store(opened: Callable[..., Any]) -> RecordStore:
    return opened(open_store)


class FaultProxy:
    """A TCP proxy in front of a server that delays, slices, cuts, resets and swallows what passes."""

    def __init__(self, target_port: int, seed: int = 1) -> None:
        self._target_port = target_port
        self._random = random.Random(seed)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.heal()

    def heal(self) -> None:
        """Passes everything on as it comes, from the next chunk on."""
        self.delay_seconds = 0.0
        self.slice_bytes = 0
        self.swallows = False
        self.refuses = False
        self.reset_probability = 0.0

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    async def __aenter__(self) -> "FaultProxy":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def cut(self) -> None:
        """Resets every connection."""
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuses:
            writer.transport.abort()
            return
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        except OSError:
            writer.transport.abort()
            return
        both = {writer, upstream_writer}
        self._writers |= both
        pumps = [
            asyncio.create_task(self._pump(reader, upstream_writer)),
            asyncio.create_task(self._pump(upstream_reader, writer)),
        ]
        self._tasks |= set(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for end in both:
            end.transport.abort()
        await asyncio.wait(pumps)
        self._tasks -= set(pumps)
        self._writers -= both

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while chunk := await reader.read(65536):
                if self.delay_seconds:
                    await asyncio.sleep(self._random.uniform(0, 2 * self.delay_seconds))
                if self._random.random() < self.reset_probability:
                    # Half of what was under way gets through, as when a server dies.
                    writer.write(chunk[: len(chunk) // 2])
                    return
                if self.swallows:
                    continue
                size = self.slice_bytes or len(chunk)
                for begin in range(0, len(chunk), size):
                    writer.write(chunk[begin : begin + size])
                    await writer.drain()
                    if self.slice_bytes:
                        await asyncio.sleep(0)
        except OSError:
            return


@pytest.fixture(params=["local", "redis"])
async def counters(request: pytest.FixtureRequest) -> AsyncIterator[Counters]:
    """In memory, and on the session's Redis."""
    if request.param == "local":
        made: Counters = LocalCounters()
    else:
        url = request.getfixturevalue("redis_server").url
        made = RedisCounters(RedisAddress.parse(url), budget_seconds=20)
    yield made
    await made.close()
