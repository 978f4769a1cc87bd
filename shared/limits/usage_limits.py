"""Limits on what the bearer of a token does in a minute, across all replicas that share the counters."""

import time
from collections.abc import Callable

from ttmark.shared.access.scopes import Principal
from ttmark.shared.access.token_limits import TokenLimits, Usage
from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.rate_limit import NOTHING, Grant, RateLimiter

_WINDOW_SECONDS = 60.0


class UsageLimits:
    """The limits of one service: a token's own where it has them, else `defaults`.

    Args:
        service: its name; each service counts apart.
        refused: told of every refusal.
    """

    def __init__(
        self,
        service: str,
        counters: Counters,
        defaults: TokenLimits,
        *,
        refused: Callable[[Principal, Usage], None] = lambda *_: None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._service = service
        self._limiter = RateLimiter(counters, window_seconds=_WINDOW_SECONDS, now=now)
        self.settle = self._limiter.settle
        self._defaults = defaults
        self._refused = refused

    async def admit(self, caller: Principal, usage: Usage, amount: int = 1) -> float | None:
        """None when `amount` is granted, else the seconds after which to try again. Raises as `take`."""
        taken = await self.take(caller, usage, amount)
        return None if isinstance(taken, Grant) else taken

    async def take(self, caller: Principal, usage: Usage, amount: int) -> Grant | float:
        """A grant of `amount`, or the seconds after which to try again. Raises as `RateLimiter.take`."""
        limit = self._limit(caller, usage)
        if not limit:
            return NOTHING
        taken = await self._limiter.take(self._name(caller, usage), amount, limit=limit)
        if not isinstance(taken, Grant):
            self._refused(caller, usage)
        return taken

    def _limit(self, caller: Principal, usage: Usage) -> int | None:
        own = caller.limits.of(usage)
        return self._defaults.of(usage) if own is None else own

    def _name(self, caller: Principal, usage: Usage) -> str:
        return f"{self._service}.{usage}:{caller.token_id}"
