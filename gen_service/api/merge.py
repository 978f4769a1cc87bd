"""Several completions as one stream of events."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import cast

from gen_service.engine.request import Delta

_EVENTS_AHEAD = 4


@dataclass(frozen=True, slots=True)
class Piece:
    """A delta of completion number `index`."""

    index: int
    delta: Delta


class _End:
    """A completion is over."""


async def merge(
    streams: Sequence[AsyncIterator[Delta]], *, idle_seconds: float
) -> AsyncGenerator[Piece | None, None]:
    """Pieces of all streams as they come, and None after each `idle_seconds` without any.

    The first error of a stream ends all of them and is raised here; so does closing this generator.
    """
    queue: asyncio.Queue[Piece | _End | Exception] = asyncio.Queue(_EVENTS_AHEAD * len(streams))
    tasks = [asyncio.create_task(_pump(index, stream, queue)) for index, stream in enumerate(streams)]
    running = len(tasks)
    try:
        while running:
            try:
                async with asyncio.timeout(idle_seconds):
                    event = await queue.get()
            except TimeoutError:
                yield None
                continue
            if isinstance(event, Exception):
                raise event
            if isinstance(event, Piece):
                yield event
            else:
                running -= 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(
    index: int, stream: AsyncIterator[Delta], queue: asyncio.Queue[Piece | _End | Exception]
) -> None:
    try:
        # The engine's streams are async generators: closing one frees its place in the batch at once.
        async with aclosing(cast(AsyncGenerator[Delta, None], stream)):
            async for delta in stream:
                await queue.put(Piece(index, delta))
    except Exception as error:
        await queue.put(error)
    else:
        await queue.put(_End())
