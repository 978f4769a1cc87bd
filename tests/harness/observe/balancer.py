"""A stand-in for the load balancer in front of the instances of a service.

New connections go round the instances that answer /readyz; open ones stay where they are. That is what a
Service of Kubernetes does.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import httpx

_PROBE_SECONDS = 0.5
_CHUNK = 65536


class Balancer:
    """Listens on a port of loopback while the block runs; `backends` may be changed at any time."""

    def __init__(self, port: int, backends: Sequence[int]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.backends = list(backends)
        self._port = port
        self._ready: list[int] = []
        self._turn = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_until_complete, args=(self._serve(),), daemon=True
        )
        self._stop = asyncio.Event()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        server = await asyncio.start_server(self._connection, "127.0.0.1", self._port)
        probing = asyncio.create_task(self._probe())
        await self._stop.wait()
        probing.cancel()
        server.close()

    async def _probe(self) -> None:
        async with httpx.AsyncClient(timeout=2) as client:
            while True:
                self._ready = [port for port in self.backends if await _is_ready(client, port)]
                await asyncio.sleep(_PROBE_SECONDS)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ready = [port for port in self._ready if port in self.backends]
        if not ready:
            writer.close()
            return
        self._turn += 1
        try:
            far = await asyncio.open_connection("127.0.0.1", ready[self._turn % len(ready)])
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, far[1]), _pump(far[0], writer))


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await source.read(_CHUNK):
            sink.write(chunk)
            await sink.drain()
    with suppress(OSError):
        sink.close()


async def _is_ready(client: httpx.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/readyz")).is_success
    except httpx.HTTPError:
        return False
