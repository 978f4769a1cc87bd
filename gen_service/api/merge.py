"""Several completions as one stream of events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from ttmark.gen_service.engine import Delta

_EVENTS_AHEAD = 4


class _End:
    """A completion is over."""


Event = Delta | _End | Exception | None


async def merge(
    streams: Sequence[AsyncIterator[Delta]], *, idle_seconds: float
) -> AsyncGenerator[Delta | None, None]:
    """Deltas of all streams as they come, each with its stream's number, and None after each period of
    `idle_seconds` without any.

    The first error of a stream ends all of them and is raised here; so does closing this generator.
    """
    queue: asyncio.Queue[Event] = asyncio.Queue(_EVENTS_AHEAD * len(streams))
    tasks = [asyncio.create_task(_pump(index, stream, queue)) for index, stream in enumerate(streams)]
    clock = _IdleClock(queue, idle_seconds)
    running = len(tasks)
    try:
        while running:
            event = await queue.get()
            clock.idle = False
            if isinstance(event, Exception):
                raise event
            if isinstance(event, _End):
                running -= 1
            else:
                yield event
    finally:
        clock.stop()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class _IdleClock:
    """Puts None into a queue after a period without events; one timer per period, not one per event."""

    def __init__(self, queue: asyncio.Queue[Event], seconds: float) -> None:
        self.idle = True
        self._queue = queue
        self._seconds = seconds
        self._timer = asyncio.get_running_loop().call_later(seconds, self._tick)

    def stop(self) -> None:
        self._timer.cancel()

    def _tick(self) -> None:
        if self.idle and self._queue.empty():
            self._queue.put_nowait(None)
        self.idle = True
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._tick)


async def _pump(index: int, stream: AsyncIterator[Delta], queue: asyncio.Queue[Event]) -> None:
    try:
        # The engine's streams are async generators: closing one frees its place in the batch at once.
        async with aclosing(cast(AsyncGenerator[Delta, None], stream)):
            async for delta in stream:
                await queue.put(replace(delta, index=index) if index else delta)
    except Exception as error:
        await queue.put(error)
    else:
        await queue.put(_End())
