"""A request's body as it arrives: counted, timed, and read no further than asked; its limits."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import Receive

from ttmark.shared.http.service_errors import RequestTimeout, TooLarge


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits on request bodies.

    Attributes:
        max_body_bytes: size of a body; more is a 413.
        body_seconds: time a client may take to send its body; more is a 408.
        least_body_rate: bytes a second at which the rest of a long body has to arrive once it is its sender's
            turn; less is a 408.
        max_json_depth: nesting of arrays and objects; more is a 400.
        max_json_containers: number of arrays and objects; more is a 400. A body full of empty ones takes the
            parser a hundred times longer than its size suggests.
        of_path: limits of single paths, in place of these.
    """

    max_body_bytes: int = 2 * 1024 * 1024
    body_seconds: float = 30.0
    least_body_rate: int = 65_536
    max_json_depth: int = 32
    max_json_containers: int = 10_000
    of_path: Mapping[str, "HttpLimits"] = field(default_factory=dict)

    def of(self, path: str) -> "HttpLimits":
        """The limits of a path."""
        return self.of_path.get(path, self)


# Before a least rate is asked for.
_GRACE_SECONDS = 1.0


class IncomingBody:
    """A body within limits.

    Attributes:
        complete: whether all of it has arrived.
        size: bytes that have.

    Raises:
        TooLarge: its declared length is over the limit.
    """

    def __init__(self, headers: Headers, receive: Receive, limits: HttpLimits) -> None:
        self.complete = False
        self._receive = receive
        self._limits = limits
        self._chunks: list[bytes] = []
        self.size = 0
        declared = headers.get("content-length", "0")
        if declared.isdecimal() and int(declared[:20]) > limits.max_body_bytes:
            raise self._too_large()

    async def read(self, enough: int, least_rate: int = 0) -> None:
        """Reads until it is complete or more than `enough` bytes have arrived.

        Args:
            least_rate: bytes a second that have to arrive, on average from now on; 0: any.

        Raises:
            TooLarge: it is over the limit.
            RequestTimeout: it comes too slowly, or takes longer than the limit from now on.
            ClientDisconnect: the sender has gone.
        """
        clock = asyncio.get_running_loop().time
        began, before, most = clock(), self.size, self._limits.body_seconds
        while not self.complete and self.size <= enough:
            seconds = most
            if least_rate:
                seconds = min(most, _GRACE_SECONDS + (self.size - before) / least_rate)
            try:
                async with asyncio.timeout_at(began + seconds):
                    await self._read_once()
            except TimeoutError:
                if seconds < most:
                    raise RequestTimeout(
                        f"A long body has to arrive at {least_rate} bytes a second or more."
                    ) from None
                raise RequestTimeout(f"The body did not arrive within {most:g} seconds.") from None

    def content(self) -> bytes:
        """What has arrived; it is not held any longer."""
        chunks, self._chunks = self._chunks, []
        return b"".join(chunks)

    async def _read_once(self) -> None:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        chunk = message.get("body", b"")
        self.size += len(chunk)
        if self.size > self._limits.max_body_bytes:
            raise self._too_large()
        self._chunks.append(chunk)
        self.complete = not message.get("more_body", False)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"The body is larger than the limit of {self._limits.max_body_bytes} bytes.")
