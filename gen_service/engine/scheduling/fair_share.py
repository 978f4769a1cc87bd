"""Shares of an engine: what tenants were given, how much is read, who gives way."""

import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from ttmark.gen_service.engine.errors import Overloaded
from ttmark.gen_service.engine.scheduling.schedulable import Schedulable


class FairShare:
    """Rows that each tenant was given, counted so that the one with the fewest for its weight is due next.

    A tenant that comes in begins at the level of those who are paused, and one of whom nothing is paused is
    lifted to it: nobody saves up for later, and nobody pays for rows that no one else wanted. Between two
    tenants of whom something is paused all the time, the rows served for each one's weight differ by no more
    than a pass and a piece of work of each.

    Args:
        weights: of tenants whose weight is not 1; above 0.
    """

    def __init__(self, weights: Mapping[str, float] | None = None) -> None:
        self._weights = dict(weights or {})
        self._service: dict[str, float] = {}
        self._level = 0.0

    def level(self, tenant: str) -> float:
        """Rows for its weight that the tenant was given, on the common scale; the lowest is due."""
        return max(self._service.get(tenant, self._level), self._level)

    def serve(self, tenant: str, rows: int) -> None:
        """Counts rows for a tenant; negative ones were planned and given up."""
        self._service[tenant] = self.level(tenant) + rows / self._weights.get(tenant, 1.0)

    def settle(self, paused: Collection[str]) -> None:
        """A pass is planned; `paused` are the tenants of whom a sequence was passed over."""
        if paused:
            self._level = min(map(self.level, paused))
        else:
            self._level = max(self._service.values(), default=self._level)
        self._service = {tenant: rows for tenant, rows in self._service.items() if rows > self._level}


_WRITING, _READING = "writing", "reading"


class ReadingShare:
    """Rows that were written and read, weighted so that readings stay within their share.

    While something is written, readings get at most `share` (above 0) times the rows that were written since
    they came in: they spend what writing has earned them, and neither saves up while the other is away. While
    nothing is written they take whatever there is.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._rows = FairShare({_READING: share})

    @property
    def credit(self) -> float:
        """Rows that may be read now, while something is written."""
        return (self._rows.level(_WRITING) - self._rows.level(_READING)) * self._share

    def write(self, rows: int) -> None:
        """Counts rows that are written; negative ones were planned and given up."""
        self._rows.serve(_WRITING, rows)

    def read(self, rows: int) -> None:
        self._rows.serve(_READING, rows)

    def settle(self, *, writing: bool, reading: bool) -> None:
        """A pass is planned; whether there is something in hand that is written, and that is read."""
        self._rows.settle([kind for kind, wanted in ((_WRITING, writing), (_READING, reading)) if wanted])


J = TypeVar("J", bound=Schedulable)


def next_victim(running: Sequence[J], ages: Mapping[J, float]) -> J:
    """The youngest sequence of the tenant that holds most; the oldest of each tenant are the last to go."""
    held = _held(running)
    others = _youngest_first(running, ages)
    if others:
        return max(others, key=lambda each: (held[each.tenant], ages[each]))
    return max(running, key=ages.__getitem__)


def beyond_their_share(
    running: Sequence[J], ages: Mapping[J, float], *, tenant: str, wanted: int, free: int, share: int
) -> list[J]:
    """Sequences to take rows from, so that a tenant gets `wanted` of them; none if they are not its due.

    They are the youngest of those who hold more than `share`. Each tenant keeps its oldest, and so gets on.
    """
    held = _held(running)
    if held[tenant] and held[tenant] + wanted > share:
        return []
    victims: list[J] = []
    for victim in _youngest_first(running, ages):
        if victim.tenant != tenant and held[victim.tenant] > share:
            held[victim.tenant] -= _rows(victim)
            victims.append(victim)
    return victims if free + sum(map(_rows, victims)) >= wanted else []


def _rows(holder: Schedulable) -> int:
    return holder.extent.length if holder.extent else 0


def _held(running: Sequence[J]) -> Counter[str]:
    held: Counter[str] = Counter()
    for sequence in running:
        held[sequence.tenant] += _rows(sequence)
    return held


def _youngest_first(running: Sequence[J], ages: Mapping[J, float]) -> list[J]:
    tenants: set[str] = set()
    others: list[J] = []
    for sequence in sorted(running, key=ages.__getitem__):
        if sequence.tenant in tenants:
            others.append(sequence)
        tenants.add(sequence.tenant)
    return others[::-1]


_WEIGHT = 0.2
_MIN_SECONDS, _MAX_SECONDS = 1.0, 60.0


class DrainRate:
    """Exponentially weighted mean of the time between two requests that leave."""

    def __init__(self) -> None:
        self._last: float | None = None
        self._interval: float | None = None

    def tick(self) -> None:
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
