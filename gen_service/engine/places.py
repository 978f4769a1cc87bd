"""Who still gets a place when an engine is full."""

from collections import Counter
from collections.abc import Callable

from ttmark.gen_service.engine.drain_rate import DrainRate
from ttmark.gen_service.engine.errors import Overloaded


def check_place(
    tenant: str, in_hand: int, held: Callable[[], Counter[str]], most: int, drain_rate: DrainRate
) -> None:
    """Does nothing while there is a place.

    When all are taken, a tenant with less than its share of them still gets in: others cannot shut it out.

    Args:
        in_hand: requests that run or wait.
        held: how many of them each tenant has.
        most: requests that may run and wait.

    Raises:
        Overloaded: `most` are in hand, and this tenant has its share of them; or twice as many are in hand.
    """
    if in_hand < most:
        return
    holders = held()
    share = most // len(holders.keys() | {tenant})
    if holders[tenant] >= share or in_hand >= 2 * most:
        raise Overloaded(drain_rate.seconds_until_free(in_hand))
