"""Which server holds the records right now: fixed, named by Sentinels, or the owner of a cluster slot."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

from ttmark.shared.vault.redis_address import RedisAddress

HASH_TAG = "{ttmark}"
"""Every name in Redis begins with it, so that in a cluster all of them lie in one slot, on one server."""

Ask = Callable[[tuple[str, int], Sequence[str]], Awaitable[Any]]
"""Sends a command to an endpoint on a connection of its own and gives the reply."""


async def locate(address: RedisAddress, ask: Ask) -> tuple[str, int]:
    """Host and port of the server to talk to.

    Raises:
        RedisError: nobody that was asked knows it.
    """
    if address.topology == "single":
        return address.endpoints[0]
    last: RedisError = RedisConnectionError("nobody to ask")
    for endpoint in address.endpoints:
        try:
            if address.topology == "sentinel":
                return _primary(await ask(endpoint, ("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.service)))
            slot = int(await ask(endpoint, ("CLUSTER", "KEYSLOT", HASH_TAG)))
            return _slot_owner(await ask(endpoint, ("CLUSTER", "SLOTS")), slot, endpoint)
        except RedisError as error:
            last = error
    raise RedisConnectionError(f"no answer where the server is: {last}")


def _primary(reply: Any) -> tuple[str, int]:
    if not reply:
        raise RedisConnectionError("the Sentinels know no service of that name")
    host, port = reply
    return host.decode(), int(port)


def _slot_owner(ranges: Any, slot: int, asked: tuple[str, int]) -> tuple[str, int]:
    for first, last, primary, *_ in ranges:
        if first <= slot <= last:
            host, port = primary[0].decode(), int(primary[1])
            return (host or asked[0]), port
    raise RedisConnectionError(f"the cluster has no server for slot {slot}")
