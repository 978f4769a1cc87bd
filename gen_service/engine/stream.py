"""The way from the engine's thread to asyncio tasks: streams of deltas that cancel when they are closed.

Also here, who still gets a place when an engine is full, and how long a refused client should wait.
"""

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable

from ttmark.gen_service.decoding.request import Delta, SequenceFailed
from ttmark.gen_service.engine.errors import EngineError, Overloaded

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

    def put(self, item: Item) -> None:
        """Takes an item in; called in the stream's own event loop."""
        self.items.put_nowait(item)


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
        """Cancels the request if it is not finished."""
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
        """Keeps an item until the next `send`."""
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
        mailbox.put(item)


_WEIGHT = 0.2
_MIN_SECONDS, _MAX_SECONDS = 1.0, 60.0


class DrainRate:
    """Exponentially weighted mean of the time between two requests that leave."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._interval: float | None = None

    def tick(self) -> None:
        """A request has left."""
        now = time.monotonic()
        if self._last is not None:
            passed = now - self._last
            interval = passed if self._interval is None else self._interval
            self._interval = interval + _WEIGHT * (passed - interval)
        self._last = now

    def rest(self) -> None:
        """Nothing is left: the time until the next request leaves says nothing of the rate."""
        self._last = None

    def seconds_until_free(self, waiting: int) -> float:
        """Time in which half of `waiting` requests leave at the present rate, between 1 s and 60 s."""
        if self._interval is None:
            return _MIN_SECONDS
        return min(_MAX_SECONDS, max(_MIN_SECONDS, self._interval * waiting / 2))


def check_place(tenant: str, held: Counter[str], most: int, drain_rate: DrainRate) -> None:
    """Does nothing while there is a place.

    When all are taken, a tenant with less than its share of them still gets in: others cannot shut it out.

    Args:
        held: how many requests of each tenant run or wait.
        most: requests that may run and wait.

    Raises:
        Overloaded: `most` are in hand, and this tenant has its share of them; or twice as many are in hand.
    """
    in_hand = held.total()
    if in_hand < most:
        return
    share = most // len(held.keys() | {tenant})
    if held[tenant] >= share or in_hand >= 2 * most:
        raise Overloaded(drain_rate.seconds_until_free(in_hand))


def reading_places(most: int, share: float) -> int:
    """Readings that may run and wait beside `most` other requests."""
    return max(1, int(share * most))
