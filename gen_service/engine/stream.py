"""The way from the engine's thread to one asyncio task: a stream of deltas that cancels when it is closed."""

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType

from gen_service.engine.errors import EngineError
from gen_service.engine.request import Delta

Item = Delta | EngineError


class DeltaStream(AsyncIterator[Delta]):
    """Deltas of one request; closing it, or dropping it, cancels the request.

    Raises:
        SequenceFailed, OutOfTime, Draining, EngineDied: while iterating, if the engine could not go on with
            the request.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        self._ended = True
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[Item] = asyncio.Queue()
        self._cancel = cancel
        self._ended = False

    def put(self, item: Item) -> None:
        """Hands an item over; called by the engine's thread. A closed event loop cancels the request."""
        try:
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)
        except RuntimeError:
            self._cancel()

    def __aiter__(self) -> "DeltaStream":
        return self

    async def __anext__(self) -> Delta:
        if self._ended:
            raise StopAsyncIteration
        item = await self._items.get()  # may be cancelled and asked again: no item is lost
        if isinstance(item, EngineError):
            self._ended = True
            raise item
        self._ended = item.finish_reason is not None
        return item

    async def aclose(self) -> None:
        """Cancels the request if it is not finished."""
        if not self._ended:
            self._ended = True
            self._cancel()

    async def __aenter__(self) -> "DeltaStream":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if not self._ended:
            self._cancel()
