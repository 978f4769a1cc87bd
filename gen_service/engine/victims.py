"""Whose cache rows are given to others when the cache is full. Plain numbers, no tensors."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from ttmark.gen_service.engine.extents import Extent


class Holder(Protocol):
    """A sequence with cache rows."""

    extent: Extent | None

    @property
    def tenant(self) -> str:
        """Whose it is."""


H = TypeVar("H", bound=Holder)


def next_victim(running: Sequence[H], ages: Mapping[H, int]) -> H:
    """The youngest sequence of the tenant that holds most; the oldest of each tenant are the last to go."""
    held = _held(running)
    others = _youngest_first(running, ages)
    if others:
        return max(others, key=lambda each: (held[each.tenant], ages[each]))
    return max(running, key=ages.__getitem__)


def beyond_their_share(
    running: Sequence[H], ages: Mapping[H, int], *, tenant: str, wanted: int, free: int, share: int
) -> list[H]:
    """Sequences to take rows from, so that a tenant gets `wanted` of them; none if they are not its due.

    They are the youngest of those who hold more than `share`. Each tenant keeps its oldest, and so gets on.
    """
    held = _held(running)
    if held[tenant] and held[tenant] + wanted > share:
        return []
    victims: list[H] = []
    for victim in _youngest_first(running, ages):
        if victim.tenant != tenant and held[victim.tenant] > share:
            held[victim.tenant] -= _rows(victim)
            victims.append(victim)
    return victims if free + sum(map(_rows, victims)) >= wanted else []


def _rows(holder: Holder) -> int:
    return holder.extent.length if holder.extent else 0


def _held(running: Sequence[H]) -> Counter[str]:
    """Cache rows of each tenant."""
    held: Counter[str] = Counter()
    for sequence in running:
        held[sequence.tenant] += _rows(sequence)
    return held


def _youngest_first(running: Sequence[H], ages: Mapping[H, int]) -> list[H]:
    """All but the oldest of each tenant."""
    tenants: set[str] = set()
    others: list[H] = []
    for sequence in sorted(running, key=ages.__getitem__):
        if sequence.tenant in tenants:
            others.append(sequence)
        tenants.add(sequence.tenant)
    return others[::-1]
