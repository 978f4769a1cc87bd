"""Both stores as fixtures: a SQLite file, and a real redis-server of the test session's own."""

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import redis

from shared.keys import RecordStore, open_store


class RedisServer:
    """A redis-server process on a free loopback port that can be killed, paused and restarted."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        binary = shutil.which("redis-server")
        if binary is None:
            pytest.fail(
                "redis-server is missing; install it with: apt-get install redis-server", pytrace=False
            )
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        self.folder = folder
        self._command = [
            binary,
            *("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(folder)),
            *("--appendonly", "yes", "--appendfsync", "always", "--save", ""),
            *arguments,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def client(self) -> redis.Redis:
        return redis.Redis(port=self.port, socket_timeout=5)

    def start(self) -> None:
        with (self.folder / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + 10
        while True:
            try:
                with self.client() as client:
                    client.ping()
                return
            except redis.RedisError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    pytest.fail(f"redis-server did not start: {(self.folder / 'redis.log').read_text()}")
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

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _wait(self) -> None:
        if self._process is not None:
            self._process.wait(timeout=10)
            self._process = None


@pytest.fixture(scope="session")
def shared_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_server(shared_redis: RedisServer) -> RedisServer:
    """The session's server, empty."""
    with shared_redis.client() as client:
        client.flushall()
    return shared_redis


@pytest.fixture(params=["sqlite", "redis"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each sort."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'keys.db'}"
    server: RedisServer = request.getfixturevalue("redis_server")
    return server.url


@pytest.fixture
async def store(store_url: str) -> AsyncIterator[RecordStore]:
    store = open_store(store_url)
    yield store
    await store.close()
