"""A TCP proxy before a server that can lose answers: the request arrives, and the client never reads why."""

import socket
import struct
import threading
from contextlib import suppress
from typing import Self

_RESET = struct.pack("ii", 1, 0)
_CHUNK = 65536


class BreakingProxy:
    """Listens on a port of loopback while the block runs.

    Attributes:
        breaks: answers that are lost from now on: the connection is reset when the server begins to answer.
        lost: how many were.
    """

    def __init__(self, target_port: int) -> None:
        self.breaks = 0
        self.lost = 0
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._threads[0].join(10)
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in self._threads[1:]:
            thread.join(10)
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target_port))
            self._sockets += [near, far]
            for pump in (self._requests, self._answers):
                thread = threading.Thread(target=pump, args=(near, far))
                self._threads.append(thread)
                thread.start()

    def _requests(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while chunk := near.recv(_CHUNK):
                far.sendall(chunk)
        with suppress(OSError):
            far.shutdown(socket.SHUT_WR)

    def _answers(self, near: socket.socket, far: socket.socket) -> None:
        with suppress(OSError):
            while chunk := far.recv(_CHUNK):
                if self.breaks:
                    self.breaks -= 1
                    self.lost += 1
                    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    break
                near.sendall(chunk)
        with suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)
