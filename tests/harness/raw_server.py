"""A server on loopback that says what it is told to, byte by byte, and a proxy that keeps what it is sent."""

import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import repeat

Talk = Callable[[socket.socket, bytes], None]
_RESET = struct.pack("ii", 1, 0)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def talking(talk: Talk, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Its host and port; `talk` is given each connection and the head of its first request."""
    ended = threading.Event()

    def serve(near: socket.socket) -> None:
        with suppress(OSError), near if tls is None else tls.wrap_socket(near, server_side=True) as one:
            talk(one, head_of(one))

    def accept() -> None:
        with suppress(OSError):
            while not ended.is_set():
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def head_of(connection: socket.socket) -> bytes:
    """All bytes up to the end of a request's head, and those that came with them."""
    head = b""
    while b"\r\n\r\n" not in head and (piece := connection.recv(65_536)):
        head += piece
    return head


def saying(pieces: Iterable[bytes], pause: float = 0.0) -> Talk:
    """Says the pieces, with a pause after each."""

    def talk(connection: socket.socket, _: bytes) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(pause)

    return talk


def endless(start: bytes, piece: bytes, pause: float = 0.0) -> Talk:
    """Says `piece` for ever after a start."""

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(start)
        saying(repeat(piece), pause)(connection, head)

    return talk


def proxying(sent: list[bytes], target: str) -> Talk:
    """A proxy that keeps the head of what it is sent, and connects everybody with `target`."""

    def talk(near: socket.socket, head: bytes) -> None:
        sent.append(head)
        if head.startswith(b"CONNECT"):
            near.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
            joined(near, target)
        else:
            near.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    return talk


def joined(
    near: socket.socket, target: str, head: bytes = b"", lost: Callable[[], bool] = lambda: False
) -> None:
    """Sends a head and what follows to a server, and its answers back; where one is lost it resets."""
    host, port = target.split(":")
    with socket.create_connection((host, int(port))) as far:
        far.sendall(head)
        there = threading.Thread(target=_pump, args=(near, far))
        there.start()
        with suppress(OSError):
            while chunk := far.recv(65_536):
                if lost():
                    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                    break
                near.sendall(chunk)
        with suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)
        there.join()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(65_536):
            sink.sendall(piece)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
