"""The way from the engine's thread to asyncio tasks: streams of deltas that cancel when they are closed."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable

from ttmark.gen_service.decoding.request import Delta, SequenceFailed
from ttmark.gen_service.engine.errors import EngineError

Failure = EngineError | SequenceFailed
Item = Delta | Failure


class Mailbox:
    """The engine's end of a stream: what is put in comes out of the `DeltaStream`.

    The engine holds this end alone, so that the other one is gone when its caller drops it.

    Args:
        cancel: gives the request up; for any thread.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self.cancel = cancel
        self.items: asyncio.Queue[Item] = asyncio.Queue()


class DeltaStream(AsyncIterator[Delta]):
    """Deltas of one request; closing it, or dropping it, cancels the request.

    Raises:
        SequenceFailed, OutOfTime, Draining, EngineDied: while iterating, if the engine could not go on with
            the request.
    """

    def __init__(self, mailbox: Mailbox) -> None:
        self._mailbox = mailbox
        self._ended = False

    def __aiter__(self) -> "DeltaStream":
        return self

    async def __anext__(self) -> Delta:
        if self._ended:
            raise StopAsyncIteration
        item = await self._mailbox.items.get()  # may be cancelled and asked again: no item is lost
        if isinstance(item, Failure):
            self._ended = True
            raise item
        self._ended = item.finish_reason is not None
        return item

    async def aclose(self) -> None:
        if not self._ended:
            self._ended = True
            self._mailbox.cancel()

    def __del__(self) -> None:
        if not self._ended:
            self._mailbox.cancel()


class Outbox:
    """Collects what a pass has for many mailboxes, so that each event loop is woken once; for one thread."""

    def __init__(self) -> None:
        self._items_of: dict[asyncio.AbstractEventLoop, list[tuple[Mailbox, Item]]] = defaultdict(list)

    def add(self, mailbox: Mailbox, item: Item) -> None:
        self._items_of[mailbox.loop].append((mailbox, item))

    def send(self) -> None:
        """Hands everything over. The requests of a closed event loop are cancelled."""
        outgoing, self._items_of = self._items_of, defaultdict(list)
        for loop, items in outgoing.items():
            try:
                loop.call_soon_threadsafe(_put_all, items)
            except RuntimeError:
                for mailbox, _ in items:
                    mailbox.cancel()


def _put_all(items: list[tuple[Mailbox, Item]]) -> None:
    for mailbox, item in items:
        mailbox.items.put_nowait(item)
