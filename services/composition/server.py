"""Serves an application until a signal ends it; every request that was taken on gets its answer."""

import asyncio
import gc
import logging
import signal
import socket
import time
from collections.abc import Awaitable, Callable, Sequence

import uvicorn
from fastapi import FastAPI
from prometheus_client import disable_created_metrics
from starlette.types import ASGIApp

from ttmark.services.settings.base import ServiceSettings
from ttmark.shared.http.connections import (
    BoundedProtocol,
    ConnectionLimits,
    allow_open_files,
    bounded_protocol,
)
from ttmark.shared.observability.memory import process_memory, release_free_memory

Drain = Callable[[float], Awaitable[None]]
# Of the time for a shutdown; the rest is for answers to get through to slow clients.
_DRAIN_SHARE = 0.9
# Requests that are under way when the signal comes, or whose sender does not know of it yet, are answered.
_LINGER_SECONDS = 0.5
# A proxy loses the request that it sends on a connection just as the server closes it, so the proxy has to be
# the first: nginx and balancers of clouds keep idle connections for 60 seconds.
_KEEP_ALIVE_SECONDS = 75


def serve(
    app: FastAPI, listener: socket.socket, settings: ServiceSettings, *, proxies: Sequence[str] = ()
) -> None:
    """Runs `app` on `listener` until SIGINT or SIGTERM, then lets running requests finish.

    Connections that send nothing of use are closed, so that any number of them locks nobody out. Of who the
    client is the server believes `proxies` alone, addresses and networks.

    From the signal on the application's state has `leaving`, and each answer ends its connection. After the
    delay that the settings name nothing new is taken on.

    A `drain` in the application's state is called with the seconds that it may take, while the service still
    answers: it refuses what is new, finishes what it has taken on, and fails what takes longer.
    """
    # It would be a second series for each counter, which Prometheus has no use for.
    disable_created_metrics()  # type: ignore[no-untyped-call]
    for number in (signal.SIGINT, signal.SIGTERM):
        # The server raises it again once it has shut down: spans would be lost and the exit code be 143.
        signal.signal(number, lambda *_: None)
    drain: Drain | None = getattr(app.state, "drain", None)
    share = _DRAIN_SHARE if drain else 0.0
    drain_seconds = settings.drain_seconds * share
    shutdown_seconds = max(1, round(settings.drain_seconds * (1 - share)))
    protocol = bounded_protocol(allow_open_files(ConnectionLimits()))

    class Server(uvicorn.Server):
        """Drains the application before connections are closed, so that every request gets an answer."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            # What was made so far stays: looking through it again and again holds requests up for 50 ms.
            release_free_memory()
            gc.freeze()
            held = ", ".join(f"{name} {bytes_ >> 20} MiB" for name, bytes_ in process_memory().items())
            logging.getLogger("ttmark.memory").info("memory: %s", held or "unknown")

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.state.leaving = True
            protocol.leave()
            end = time.monotonic() + settings.drain_delay_seconds
            while time.monotonic() < end and not self.force_exit:  # noqa: ASYNC110 - set by a signal
                await asyncio.sleep(0.1)
            if drain is not None:
                draining = asyncio.gather(drain(drain_seconds), asyncio.sleep(_LINGER_SECONDS))
                while not (draining.done() or self.force_exit):
                    await asyncio.wait([draining], timeout=0.1)
                if self.force_exit:
                    await drain(0)
                await draining
            await super().shutdown(sockets)
            gc.unfreeze()  # or it would outlive the interpreter, of which libraries complain

    Server(server_config(app, protocol, proxies, shutdown_seconds)).run(sockets=[listener])


def server_config(
    app: ASGIApp, protocol: type[BoundedProtocol], proxies: Sequence[str], shutdown_seconds: int
) -> uvicorn.Config:
    """How the server treats connections and, of `proxies`, what they say of their clients."""
    return uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=bool(proxies),
        forwarded_allow_ips=list(proxies),
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=shutdown_seconds,
    )
