"""Server-sent events: one JSON object per event, comments to keep the connection open."""

from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Any

from pydantic import BaseModel
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


def event(data: BaseModel, *, name: str = "", without: Collection[str] = ()) -> bytes:
    """One event, of the type `name` if there is one; fields in `without` are left out of its data."""
    head = b"event: " + name.encode() + b"\n" if name else b""
    return head + b"data: " + data.model_dump_json(exclude=set(without)).encode() + b"\n\n"


class EventStream(StreamingResponse):
    """Sends the events of `content` until they end or the client goes; `source` is closed in any case.

    Args:
        content: events as bytes.
        source: what `content` reads from and may not have begun to read when the client goes.
        headers: of the answer.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        content: AsyncGenerator[bytes, None],
        source: AsyncGenerator[Any, None],
        headers: Mapping[str, str],
    ) -> None:
        # Proxies that buffer would turn the stream into one late answer.
        unbuffered = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(content, headers={**unbuffered, **headers})
        self._content = content
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._content.aclose()
            await self._source.aclose()
