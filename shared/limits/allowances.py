"""What an access token may use of each service; a service without limits has no allowance."""

import asyncio
from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from ttmark.shared.access.scopes import Principal
from ttmark.shared.access.token_limits import TokenLimits, Usage
from ttmark.shared.http.service_errors import TooManyRequests
from ttmark.shared.limits.counters import Counters
from ttmark.shared.limits.rate_limit import Grant, UsageLimits
from ttmark.shared.limits.row_space import REASONS, Reason
from ttmark.shared.limits.spent_evidence import AnswerLedger
from ttmark.shared.vault.audit_events import AuditEvent, AuditSink

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
        """A request was refused; `limit` is one of LIMITS."""
        self._refusals.labels(limit).inc()

    def watch(self, shared: Callable[[], bool]) -> None:
        """Reads at each scrape whether the counters are shared."""
        self._shared.set_function(lambda: float(shared()))


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


class DocumentAllowance(Allowance):
    """Documents, and answers about their rows.

    Attributes:
        ledger: counts the answers of callers who see verdicts alone; None: nothing is counted.
    """

    def __init__(
        self,
        service: str,
        counters: Counters,
        defaults: TokenLimits,
        metrics: LimitMetrics,
        audit: AuditSink,
        *,
        ledger: AnswerLedger | None,
    ) -> None:
        super().__init__(service, counters, defaults, metrics, audit)
        self.ledger = ledger

    async def take(self, caller: Principal, documents: int) -> None:
        """Grants so many documents.

        Raises:
            TooManyRequests: the minute's are used up.
        """
        await self._grant(caller, Usage.DOCUMENTS, documents)

    def refused(self, caller: Principal, reasons: Sequence[Reason]) -> None:
        """Documents of a request got no verdict."""
        for reason in dict.fromkeys(reasons):
            self._refused(caller, reason)
