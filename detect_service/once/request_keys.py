"""What a store of idempotency keys does: it keeps an entry for each, and changes it for one at a time."""

from typing import Protocol

# Of a tenant. Beyond, its oldest entry is forgotten: a flood of keys costs nobody else room.
MOST_KEYS = 4_096


class RequestKeys(Protocol):
    """Sealed entries of tenants by name. No two are equal: an entry that is still there was not changed.

    Every method raises StoreUnavailable when the store does not answer in time.
    """

    async def get(self, tenant: str, name: str) -> bytes | None:
        """The entry, or None."""

    async def put(self, tenant: str, name: str, entry: bytes, *, was: bytes | None, until: float) -> bool:
        """Keeps `entry` until then in place of `was`, or of nothing; False: something else is there."""

    async def remove(self, tenant: str, name: str, *, was: bytes) -> None:
        """Forgets the entry, unless it is another one by now."""

    async def expire(self, now: float) -> None:
        """Forgets the entries whose time is over, of a busy tenant some later."""
