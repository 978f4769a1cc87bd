"""What a store hands out is done for several tenants at once, so that none of them waits for another."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection
from typing import Generic, Protocol, TypeVar

import structlog

from ttmark.detect_service.jobs.job_store import JobRecord

TENANTS_AT_ONCE = 8
_IDLE_SECONDS = 1.0
_FAILED_SECONDS = 5.0


class OfAJob(Protocol):
    """Something that is to be done for a job."""

    @property
    def job(self) -> JobRecord:
        """Says whose it is."""


T = TypeVar("T", bound=OfAJob)


class Turns(Generic[T]):
    """Takes things from a store and does them beside each other.

    Args:
        name: of what is done, in the log.
        take: the next thing of any tenant but these; None: there is none now.
        do: does one thing, and gives it back when it is cancelled.
        of_each: things of one tenant at the same time.
    """

    def __init__(
        self,
        name: str,
        take: Callable[[Collection[str]], Awaitable[T | None]],
        do: Callable[[T], Awaitable[None]],
        *,
        of_each: int = 1,
    ) -> None:
        self._name = name
        self._take = take
        self._do = do
        self._of_each = of_each
        self._tenants: dict[asyncio.Task[None], str] = {}
        self._log = structlog.get_logger("ttmark.jobs")

    async def run(self) -> None:
        """Goes on until it is cancelled, and then ends what is being done."""
        try:
            while True:
                await self._round()
        finally:
            for task in self._tenants:
                task.cancel()
            await asyncio.gather(*self._tenants, return_exceptions=True)

    async def _round(self) -> None:
        if len(self._tenants) >= self._of_each * TENANTS_AT_ONCE:
            await self._rest()
            return
        counts = Counter(self._tenants.values())
        try:
            taken = await self._take([tenant for tenant in counts if counts[tenant] >= self._of_each])
        except Exception as error:
            await self._failed(error)
            return
        if taken is None:
            await self._rest()
            return
        task = asyncio.create_task(self._done(taken))
        self._tenants[task] = taken.job.tenant
        task.add_done_callback(self._tenants.pop)

    async def _done(self, taken: T) -> None:
        try:
            await self._do(taken)
        except Exception as error:
            await self._failed(error)  # its tenant waits meanwhile, and no other

    async def _failed(self, error: Exception) -> None:
        # The name alone: a message may hold what a document says.
        self._log.warning(f"{self._name}_failed", error=type(error).__name__)
        await asyncio.sleep(_FAILED_SECONDS)

    async def _rest(self) -> None:
        """Until something is done, but not for long: another replica may have made a job."""
        if self._tenants:
            await asyncio.wait(self._tenants, timeout=_IDLE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(_IDLE_SECONDS)
