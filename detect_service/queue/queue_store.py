"""What a store of queues does: it keeps sealed items of tenants, and changes each on what was before."""

from dataclasses import dataclass
from typing import Protocol

from ttmark.shared.schemas.queue import QueueState


class QueueFull(Exception):
    """The tenant's queue has as many items as it may."""


@dataclass(frozen=True, slots=True)
class KeptItem:
    """An item as it lies in the store.

    Attributes:
        version: how often it was written; 1 is a new one.
        sealed: all that is not said here.
        added_at: Unix time; the queue's order.
        expires_at: Unix time from which it may be forgotten.
    """

    item_id: str
    tenant: str
    state: QueueState
    version: int
    sealed: bytes
    added_at: float
    expires_at: float


class QueueStore(Protocol):
    """Every method raises StoreUnavailable when the store does not answer in time."""

    async def add(self, item: KeptItem, most: int) -> bool:
        """Adds an item, unless the tenant has one of this id; whether it was added.

        Raises:
            QueueFull: the tenant has `most` items.
        """

    async def replace(self, item: KeptItem) -> bool:
        """Takes the place of the item's version before; whether that was there."""

    async def get(self, tenant: str, item_id: str) -> KeptItem | None:
        """The tenant's item, or None."""

    async def listed(self, tenant: str, state: QueueState | None, offset: int, limit: int) -> list[KeptItem]:
        """Items of the tenant in this state, or in any, the newest first."""

    async def delete(self, tenant: str, item_id: str) -> bool:
        """Forgets an item of the tenant; whether there was one."""

    async def expire(self, now: float) -> int:
        """Forgets the items whose time has come; how many."""

    async def close(self) -> None:
        """Gives up connections and files."""
