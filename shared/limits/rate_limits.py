"""What an access token or a tenant may use of each service, in a while, across all replicas."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, Counter, Gauge

from ttmark.shared.access.scopes import Principal, Quota, TokenLimits
from ttmark.shared.events import Event, EventSink
from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.limits.counters import PARTS, Counters
from ttmark.shared.limits.counting_filter import REASONS


@dataclass(frozen=True, slots=True)
class Grant:
    """Units that were granted, and the part of which counter they were taken from."""

    counter: str
    units: int
    part: int = 0


NOTHING = Grant("", 0)
"""What is granted where nothing is limited."""


class RateLimiter:
    """At most so many units in any `window_seconds`, but for a sixtieth, and if need be all at once.

    What was taken within a sixtieth is granted again when the window has passed since that began: nobody
    waits longer. What is refused does not count.
    """

    def __init__(
        self, counters: Counters, *, window_seconds: float, now: Callable[[], float] = time.time
    ) -> None:
        self._counters = counters
        self._window = window_seconds
        self._width = window_seconds / PARTS
        self._now = now

    async def admit(self, caller: str, cost: int = 1, *, limit: int) -> float | None:
        """None when `cost` units are granted, else the seconds after which to try again. Raises as `take`."""
        taken = await self.take(caller, cost, limit=limit)
        return None if isinstance(taken, Grant) else taken

    async def take(self, caller: str, cost: int = 1, *, limit: int) -> Grant | float:
        """A grant of `cost` units, or the seconds after which to try again, at most the window's.

        More than the whole limit counts as that: it is granted when nothing else was used lately.

        Args:
            limit: at least 1.

        Raises:
            StoreUnavailable: the counters cannot be reached.
        """
        now = self._now()
        grant = Grant(f"taken:{caller}", min(cost, limit), int(now // self._width))
        used = await self._add(grant, grant.units)
        room = limit - sum(used.values())
        if room >= 0:
            return grant
        await self._add(grant, -grant.units)
        used[grant.part] -= grant.units
        for part in sorted(used):
            room += used[part]
            if room >= 0:
                break
        return (part + PARTS) * self._width - now

    async def settle(self, grant: Grant, *, used: int) -> None:
        """Gives back what was not used, while it counts. Raises StoreUnavailable."""
        unused = grant.units - used
        if 0 < unused <= grant.units and grant.part > self._now() // self._width - PARTS:
            left = (await self._add(grant, -unused))[grant.part]
            if left < 0:  # of another store
                await self._add(grant, min(unused, -left))

    async def _add(self, grant: Grant, units: int) -> dict[int, int]:
        """What was used of each part that counts."""
        lifetime = 2 * self._window
        return await self._counters.add(grant.counter, units, part=grant.part, lifetime_seconds=lifetime)


_WINDOW_SECONDS = 60.0


class WorkBudget:
    """At most `per_minute` units of work for each tenant, whichever of its tokens asks."""

    def __init__(
        self, service: str, counters: Counters, *, per_minute: int, now: Callable[[], float] = time.time
    ) -> None:
        self.per_minute = per_minute
        self._service = service
        self._limiter = RateLimiter(counters, window_seconds=_WINDOW_SECONDS, now=now)
        self.settle = self._limiter.settle

    async def take(self, tenant: str, units: int) -> Grant | float:
        """The work that is granted, or the seconds after which to try again. Raises as `RateLimiter.take`."""
        return await self._limiter.take(f"{self._service}.work:{tenant}", units, limit=self.per_minute)


# Of the token, by what is counted; why documents get no verdict; and of public questions.
PUBLIC_LIMITS = ("address", "words")
LIMITS = ("requests", "tokens", "documents", *REASONS, *PUBLIC_LIMITS)


class LimitMetrics:
    """Refusals by limit, and whether all replicas count together."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refusals = Counter(
            "ttmark_limit_refusals",
            "Requests, and documents of requests, refused because a limit of their access token was reached.",
            ["limit"],
            registry=registry,
        )
        self._shared = Gauge(
            "ttmark_limit_counters_shared",
            "1 while limits are counted over all replicas, 0 while each counts for itself.",
            registry=registry,
        )
        for limit in LIMITS:
            self._refusals.labels(limit)

    def refused(self, limit: str) -> None:
        self._refusals.labels(limit).inc()

    def watch(self, shared: Callable[[], bool]) -> None:
        self._shared.set_function(lambda: float(shared()))


class Allowance:
    """Requests, of both services; what else is limited is added by the two classes below.

    Args:
        service: its name; each service counts apart.
        defaults: limits of a token that has none of its own.
    """

    def __init__(
        self,
        service: str,
        counters: Counters,
        defaults: TokenLimits,
        metrics: LimitMetrics,
        audit: EventSink,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._service = service
        self._limiter = RateLimiter(counters, window_seconds=_WINDOW_SECONDS, now=now)
        self._settling: set[asyncio.Task[None]] = set()
        self._defaults = defaults
        self._metrics = metrics
        self._audit = audit
        metrics.watch(lambda: counters.shared)

    async def admit(self, caller: Principal) -> float | None:
        """One request: None, or the seconds after which to try again."""
        taken = await self._take(caller, Quota.REQUESTS, 1)
        return None if isinstance(taken, Grant) else taken

    async def _grant(self, caller: Principal, quota: Quota, amount: int) -> Grant:
        taken = await self._take(caller, quota, amount)
        if not isinstance(taken, Grant):
            raise TooManyRequests(
                f"The access token's limit of {quota} per minute is reached.", retry_after=taken
            )
        return taken

    async def _take(self, caller: Principal, quota: Quota, amount: int) -> Grant | float:
        own = caller.limits.of(quota)
        limit = self._defaults.of(quota) if own is None else own
        if not limit:
            return NOTHING
        taken = await self._limiter.take(f"{self._service}.{quota}:{caller.token_id}", amount, limit=limit)
        if not isinstance(taken, Grant):
            self._refused(caller, quota)
        return taken

    def _refused(self, caller: Principal, limit: str) -> None:
        self._metrics.refused(limit)
        self._audit(Event("token.throttle", token_id=caller.token_id, tenant=caller.tenant, reason=limit))


class TokenAllowance(Allowance):
    """Tokens of prompts and completions together, granted before a completion and settled after it."""

    async def take(self, caller: Principal, tokens: int) -> Grant:
        """Grants the most tokens that a request can come to.

        Raises:
            TooManyRequests: the minute's are used up.
        """
        return await self._grant(caller, Quota.TOKENS, tokens)

    def settle(self, grant: Grant, *, used: int) -> None:
        """Gives back in the background what was not used: the request may be cancelled already."""
        task = asyncio.create_task(self._limiter.settle(grant, used=used), name="settle-tokens")
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)


class DocumentAllowance(Allowance):
    """Documents."""

    async def take(self, caller: Principal, documents: int) -> None:
        """Grants so many documents.

        Raises:
            TooManyRequests: the minute's are used up.
        """
        await self._grant(caller, Quota.DOCUMENTS, documents)

    def refused(self, caller: Principal, reasons: Sequence[str]) -> None:
        for reason in dict.fromkeys(reasons):
            self._refused(caller, reason)
