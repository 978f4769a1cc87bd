"""What an access token may use of each service; a service without limits has no allowance."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from ttmark.shared.access.scopes import Principal
from ttmark.shared.access.token_limits import TokenLimits, Usage
from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.limit_metrics import LimitMetrics
from ttmark.shared.limits.near_duplicates import Content, NearDuplicateThrottle, Sketch
from ttmark.shared.limits.rate_limit import Grant
from ttmark.shared.limits.refusal_words import refusal_words
from ttmark.shared.limits.usage_limits import UsageLimits
from ttmark.shared.vault.audit import AuditEvent, AuditSink
from ttmark.shared.watermark.pauses import pause

# Sketching less than this takes less time than handing it to another thread and back.
_INLINE_ITEMS = 8192
# As many as a request may have. The documents of a job are asked about in such pieces: Redis serves nobody
# else meanwhile. Of a job that is refused, the pieces before count, and are free when it is sent again.
_SKETCHES_AT_ONCE = 256
Run = Callable[[Callable[[], list[Sketch]]], Awaitable[list[Sketch]]]


class Allowance:
    """Requests, of both services; what else is limited is added by the two classes below."""

    def __init__(
        self, service: str, counters: Counters, defaults: TokenLimits, metrics: LimitMetrics, audit: AuditSink
    ) -> None:
        self._usage = UsageLimits(service, counters, defaults, refused=self._refused)
        self._metrics = metrics
        self._audit = audit
        metrics.watch(lambda: counters.shared)

    async def admit(self, caller: Principal) -> float | None:
        """One request: None, or the seconds after which to try again."""
        return await self._usage.admit(caller, Usage.REQUESTS)

    async def _grant(self, caller: Principal, usage: Usage, amount: int) -> Grant:
        taken = await self._usage.take(caller, usage, amount)
        if not isinstance(taken, Grant):
            raise TooManyRequests(
                f"The access token's limit of {usage} per minute is reached.", retry_after=taken
            )
        return taken

    def _refused(self, caller: Principal, limit: str) -> None:
        self._metrics.refused(limit)
        self._audit(
            AuditEvent("token.throttle", token_id=caller.token_id, tenant=caller.tenant, reason=limit)
        )


class TokenAllowance(Allowance):
    """Tokens of prompts and completions together, granted before a completion and settled after it."""

    def __init__(
        self, service: str, counters: Counters, defaults: TokenLimits, metrics: LimitMetrics, audit: AuditSink
    ) -> None:
        super().__init__(service, counters, defaults, metrics, audit)
        self._settling: set[asyncio.Task[None]] = set()

    async def take(self, caller: Principal, tokens: int) -> Grant:
        """Grants the most tokens that a request can come to.

        Raises:
            TooManyRequests: the minute's are used up.
        """
        return await self._grant(caller, Usage.TOKENS, tokens)

    def settle(self, grant: Grant, *, used: int) -> None:
        """Gives back in the background what was not used: the request may be cancelled already."""
        task = asyncio.create_task(self._usage.settle(grant, used=used), name="settle-tokens")
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)


@dataclass(frozen=True, slots=True)
class AskedDocuments:
    """The documents of a detection request.

    Attributes:
        count: how many.
        rate: the false positive rate that they are asked at.
        size: characters and token ids in all.
        read: what the throttle compares of each; called on a thread where there is much to read.
    """

    count: int
    rate: float
    size: int
    read: Callable[[], Sequence[Content]]


class DocumentAllowance(Allowance):
    """Documents, and questions about one passage."""

    def __init__(
        self,
        service: str,
        counters: Counters,
        defaults: TokenLimits,
        metrics: LimitMetrics,
        audit: AuditSink,
        *,
        throttle: NearDuplicateThrottle | None,
    ) -> None:
        super().__init__(service, counters, defaults, metrics, audit)
        self._throttle = throttle

    async def take(self, caller: Principal, asked: AskedDocuments, run: Run = asyncio.to_thread) -> None:
        """Grants the documents of a request; `run` looks at long ones off the event loop.

        Raises:
            TooManyRequests: the minute's are used up, a passage was asked about too often, or too many
                documents at coarse rates.
        """
        await self._grant(caller, Usage.DOCUMENTS, asked.count)
        throttle = self._throttle
        if throttle is None:
            return
        sketches = await sketched(asked, throttle, run)
        for first in range(0, len(sketches), _SKETCHES_AT_ONCE):
            some = sketches[first : first + _SKETCHES_AT_ONCE]
            refusal = await throttle.admit(caller, some, rate=asked.rate)
            if refusal is not None:
                self._refused(caller, refusal.reason)
                refusal = replace(refusal, index=first + refusal.index)
                raise TooManyRequests(
                    refusal_words(refusal, throttle.rule_of(caller)),
                    param=f"inputs[{refusal.index}]",
                    retry_after=refusal.wait_seconds,
                )


async def sketched(asked: AskedDocuments, throttle: NearDuplicateThrottle, run: Run) -> list[Sketch]:
    """What the throttle compares; `run` looks at long documents off the event loop."""

    def sketches() -> list[Sketch]:
        found = []
        for content in asked.read():
            pause()
            found.append(throttle.sketch(content))
        return found

    return sketches() if asked.size <= _INLINE_ITEMS else await run(sketches)
