"""Who still gets a place when an engine is full."""

from collections import Counter

from ttmark.gen_service.engine.drain_rate import DrainRate
from ttmark.gen_service.engine.errors import Overloaded


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
