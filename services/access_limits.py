"""The limits on access tokens as the two services ask for them."""

import asyncio
from collections.abc import Sequence

from shared.http.errors import TooManyRequests
from shared.keys import (
    AuditEvent,
    AuditSink,
    Counters,
    NearDuplicateThrottle,
    Principal,
    Sketch,
    TokenLimits,
    Usage,
    UsageLimits,
    sketch_text,
    sketch_tokens,
)
from shared.observability.limit_metrics import LimitMetrics
from shared.schemas.detection import Document

# Sketching less than this takes less time than handing it to another thread and back.
_INLINE_ITEMS = 8192


class AccessLimits:
    """Requests of both services; what else is limited is added by the two classes below."""

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

    async def _grant(self, caller: Principal, usage: Usage, amount: int) -> None:
        wait = await self._usage.admit(caller, usage, amount)
        if wait is not None:
            raise TooManyRequests(
                f"The access token's limit of {usage} per minute is reached.", retry_after=wait
            )

    def _refused(self, caller: Principal, limit: str) -> None:
        self._metrics.refused(limit)
        self._audit(
            AuditEvent("token.throttle", token_id=caller.token_id, tenant=caller.tenant, reason=limit)
        )


class GenerationLimits(AccessLimits):
    """Tokens, granted before a completion and settled after it."""

    def __init__(
        self, service: str, counters: Counters, defaults: TokenLimits, metrics: LimitMetrics, audit: AuditSink
    ) -> None:
        super().__init__(service, counters, defaults, metrics, audit)
        self._settling: set[asyncio.Task[None]] = set()

    async def take(self, caller: Principal, tokens: int) -> None:
        """Grants tokens.

        Raises:
            TooManyRequests: the minute's are used up.
        """
        await self._grant(caller, Usage.TOKENS, tokens)

    def settle(self, caller: Principal, *, granted: int, used: int) -> None:
        """Gives back in the background what was not used."""
        task = asyncio.create_task(
            self._usage.settle(caller, Usage.TOKENS, granted=granted, used=used), name="settle-tokens"
        )
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)


class DetectionLimits(AccessLimits):
    """Documents, and variants of one document."""

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

    async def take(self, caller: Principal, documents: Sequence[Document]) -> None:
        """Grants the documents of a request.

        Raises:
            TooManyRequests: the minute's are used up, or one of them has been varied too often.
        """
        await self._grant(caller, Usage.DOCUMENTS, len(documents))
        if self._throttle is None:
            return
        wait = await self._throttle.admit(caller.token_id, await _sketches(documents))
        if wait is not None:
            self._refused(caller, "variants")
            raise TooManyRequests("Too many variants of one document were sent.", retry_after=wait)


async def _sketches(documents: Sequence[Document]) -> list[Sketch]:
    def sketches() -> list[Sketch]:
        return [_sketch(document) for document in documents]

    size = sum(len(document.text or document.token_ids or ()) for document in documents)
    return sketches() if size <= _INLINE_ITEMS else await asyncio.to_thread(sketches)


def _sketch(document: Document) -> Sketch:
    return sketch_tokens(document.token_ids or ()) if document.text is None else sketch_text(document.text)
