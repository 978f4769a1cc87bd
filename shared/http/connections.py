"""Connections that cost nothing to hold are not held: time limits for headers and bodies, and a cap."""

import asyncio
import resource
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import chain

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# For models, stores, logs, and what libraries open.
_FILES_BESIDE = 256
# Beside the time for a body, in which the application answers that it did not come in time.
_GRACE_SECONDS = 5.0
# A client that closed its sending half is asked so often whether it is still there, until its answer begins.
_PROBE_SECONDS = 1.0
_PROBE = b"HTTP/1.1 102 Processing\r\n\r\n"
_TIMEOUT = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What a connection may hold without sending anything of use.

    Attributes:
        header_seconds: time from the connection, or from the first byte of a later request, to the end of the
            headers, which are a few kilobytes.
        body_seconds: time from there to the end of the body, while the server reads it; as `HttpLimits`.
        max_connections: open at the same time, several times as many as requests may wait. Beyond, the one is
            closed that has waited longest for the end of its headers; where there is none, one between two
            requests; else the new one.
    """

    header_seconds: float = 10.0
    body_seconds: float = 30.0
    max_connections: int = 4096


@dataclass
class _Open:
    """The connections of one server; those that are sending headers, in the order in which they began.

    Attributes:
        leaving: each is to be closed with its next answer, which says so.
    """

    all: set["BoundedProtocol"] = field(default_factory=set)
    sending_headers: dict["BoundedProtocol", None] = field(default_factory=dict)
    leaving: bool = False


def allow_open_files(limits: ConnectionLimits) -> ConnectionLimits:
    """Raises the process's limit of open files to what the connections need, or lowers their number to it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.max_connections + _FILES_BESIDE
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    elif soft != resource.RLIM_INFINITY:
        wanted = min(limits.max_connections + _FILES_BESIDE, soft)
    most = min(limits.max_connections, max(1, wanted - _FILES_BESIDE))
    return ConnectionLimits(limits.header_seconds, limits.body_seconds, most)


class BoundedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol, which itself waits for headers and bodies for ever; see `bounded_protocol`."""

    limits: ConnectionLimits
    opened: _Open
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.opened.all.add(self)
        if len(self.opened.all) > self.limits.max_connections:
            idle = (one for one in self.opened.all if one.timeout_keep_alive_task is not None)
            least = next(chain(self.opened.sending_headers, idle), self)
            least._close()
            if least is self:
                return
        self._await_headers()

    def eof_received(self) -> bool:  # type: ignore[override]
        """Whether the answer is waited for: by a client that said that this request is its last.

        It may have closed the other half as well. Then it refuses the first bytes that it is sent; an interim
        answer takes them to it, which every client of HTTP/1.1 passes over.
        """
        cycle, scope = self.cycle, self.scope
        waits = (
            cycle is not None
            and not (cycle.more_body or cycle.response_started or cycle.disconnected)
            and scope["http_version"] == "1.1"
            and (b"connection", b"close") in [(name, value.lower()) for name, value in scope["headers"]]
            and self.transport.get_extra_info("sslcontext") is None
        )
        if waits:
            self._start_timer(_PROBE_SECONDS, self._probe)
        return waits

    def _probe(self) -> None:
        if self.transport.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self.transport.abort()
        elif not self.cycle.response_started:
            self.transport.write(_PROBE)
            self._start_timer(_PROBE_SECONDS, self._probe)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.opened.all.discard(self)
        self.opened.sending_headers.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        between = self.cycle is not None and self.cycle.response_complete
        if between and self._timer is None and self.timeout_keep_alive_task is None:
            self._await_headers()  # bytes that begin no request earn no more time

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self not in self.opened.sending_headers:
            self._await_headers()

    def on_headers_complete(self) -> None:
        self.opened.sending_headers.pop(self, None)
        self._start_timer(self.limits.body_seconds + _GRACE_SECONDS, self._body_is_late)
        super().on_headers_complete()
        if self.opened.leaving:
            self._end_with_this_answer()

    def on_message_complete(self) -> None:
        self._stop_timer()
        super().on_message_complete()

    @classmethod
    def leave(cls) -> None:
        """Ends each connection with its next answer whose headers can say so.

        Whoever keeps it for another request hears of it, and loses none to a connection that closes.
        """
        cls.opened.leaving = True
        for connection in cls.opened.all:
            connection._end_with_this_answer()

    def _end_with_this_answer(self) -> None:
        if self.cycle is not None and not self.cycle.response_started:  # its headers say so
            self.cycle.keep_alive = False

    def _await_headers(self) -> None:
        self.opened.sending_headers[self] = None
        self._start_timer(self.limits.header_seconds, self._headers_are_late)

    def _headers_are_late(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_TIMEOUT)
        self._close()

    def _body_is_late(self) -> None:
        if self.flow.read_paused:  # it is the server that does not read
            self._start_timer(self.limits.body_seconds, self._body_is_late)
        else:
            self._close()

    def _start_timer(self, seconds: float, late: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(seconds, late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close(self) -> None:
        self._stop_timer()
        self.opened.all.discard(self)
        self.opened.sending_headers.pop(self, None)
        self.transport.close()


def bounded_protocol(limits: ConnectionLimits) -> type[BoundedProtocol]:
    """The protocol of one server with these limits, for uvicorn's `http` setting."""

    class Bounded(BoundedProtocol):
        """Counts the connections of its server."""

    Bounded.limits, Bounded.opened = limits, _Open()
    return Bounded
