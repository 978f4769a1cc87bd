"""Counters of all replicas while they can be reached, and of this process alone while they cannot."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from ttmark.shared.limits.counters import Counters, LocalCounters
from ttmark.shared.limits.counting_filter import Inquiry, Reply
from ttmark.shared.vault.key_store_errors import StoreUnavailable
from ttmark.shared.vault.outage import RETRY_SECONDS, Outage

T = TypeVar("T")


class FallbackCounters:
    """Shared counters, and this process's own while the shared ones are away.

    Where a call fails, and they answer, it is tried once more. What fails again fails alone if it asks what
    is spent, which the process's own counters do not know; what is only written is written to those.
    """

    def __init__(self, counters: Counters, *, retry_seconds: float = RETRY_SECONDS) -> None:
        self._shared = counters
        self._local = LocalCounters()
        self._outage = Outage(lambda: counters.add("look", 0, lifetime_seconds=60), retry_seconds)

    @property
    def shared(self) -> bool:
        """Whether the shared counters answered, or were not asked yet, when they were looked for last."""
        return not self._outage.away

    async def add(self, name: str, amount: int, **how: Any) -> dict[int, int]:
        return await self._run(lambda counters: counters.add(name, amount, **how), is_read=False)

    async def ask(self, inquiry: Inquiry) -> list[Reply]:
        return await self._run(lambda counters: counters.ask(inquiry))

    async def put(self, name: str, values: Mapping[bytes, bytes], *, lifetime_seconds: float) -> None:
        await self._run(
            lambda counters: counters.put(name, values, lifetime_seconds=lifetime_seconds), is_read=False
        )

    async def get(self, name: str, fields: Sequence[bytes]) -> list[bytes | None]:
        return await self._run(lambda counters: counters.get(name, fields))

    async def close(self) -> None:
        self._outage.close()
        await self._shared.close()

    async def _run(self, work: Callable[[Counters], Awaitable[T]], *, is_read: bool = True) -> T:
        for look in (self._outage.look, None):
            if self._outage.away:
                break
            try:
                return await work(self._shared)
            except StoreUnavailable:
                if look is not None:
                    await look()
                elif is_read:
                    raise
        return await work(self._local)
