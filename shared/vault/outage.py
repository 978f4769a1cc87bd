"""Whether what calls go to is away: said by looks of our own, and not by calls that fail."""

import asyncio
from collections.abc import Awaitable, Callable

RETRY_SECONDS = 0.5


class Outage:
    """Looks whether something answers, where a call failed, and again twice a second until it does.

    One look is under way at a time, and only looks count: a call that fails late, or for reasons of its own,
    takes nothing from others.

    Attributes:
        away: by the last look.

    Args:
        look: asks for something; raises where there is no answer.
    """

    def __init__(self, look: Callable[[], Awaitable[object]], retry_seconds: float = RETRY_SECONDS) -> None:
        self.away = False
        self._look = look
        self._retry_seconds = retry_seconds
        self._looking: asyncio.Task[None] | None = None
        self._again: asyncio.TimerHandle | None = None

    @property
    def doubtful(self) -> bool:
        """Whether it is away, or that is being found out."""
        return self.away or self._looking is not None

    def look(self) -> Awaitable[None]:
        """Begins a look, unless one is under way; wait for it to know `away`."""
        if self._looking is None:
            self._looking = asyncio.create_task(self._looked())
        return asyncio.shield(self._looking)

    def close(self) -> None:
        for one in (self._again, self._looking):
            if one is not None:
                one.cancel()

    async def _looked(self) -> None:
        try:
            await self._look()
            self.away = False
        except Exception:  # whatever it is: who looks no more never finds it
            self.away = True
            self._again = asyncio.get_running_loop().call_later(self._retry_seconds, self.look)
        finally:
            self._looking = None
