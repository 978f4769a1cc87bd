"""Applications that listen on loopback, each in a thread of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from tests.harness.waiting import eventually


@contextmanager
def listening(app: Any, **options: Any) -> Iterator[int]:
    """The port, until the block is left; `options` as those of uvicorn."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    given = {"log_config": None, "access_log": False, "ws": "none", "lifespan": "off"} | options
    server = uvicorn.Server(uvicorn.Config(app, **given))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    eventually(lambda: server.started)
    yield int(listener.getsockname()[1])
    server.should_exit = server.force_exit = True
    thread.join(timeout=30)
