"""What an access token lets its bearer do, and how much of it in a minute."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field


class Quota(StrEnum):
    """What a token may use so much of in a minute."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    DOCUMENTS = "documents"


class TokenLimits(BaseModel):
    """Limits for each minute and service; 0 is no limit, None leaves it to the service."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests_per_minute: int | None = Field(default=None, ge=0)
    tokens_per_minute: int | None = Field(default=None, ge=0)
    documents_per_minute: int | None = Field(default=None, ge=0)

    def of(self, quota: Quota) -> int | None:
        limit: int | None = getattr(self, f"{quota}_per_minute")
        return limit


MOST_RATES = 5
DEFAULT_RATES = (1e-2, 1e-3, 1e-5)


def checked_rates(rates: Collection[float]) -> tuple[float, ...]:
    """The rates in order, the coarsest first, each once.

    Raises:
        ValueError: none, more than five (many rates amount to a score), or one outside 1e-100 to 0.1.
    """
    if not 1 <= len(rates) <= MOST_RATES:
        raise ValueError(f"a token has 1 to {MOST_RATES} false positive rates")
    if not all(1e-100 <= rate <= 0.1 for rate in rates):
        raise ValueError("a false positive rate lies between 1e-100 and 0.1")
    return tuple(sorted(set(rates), reverse=True))


def allowed_rate(wanted: float | None, default: float, rates: Sequence[float]) -> float | None:
    """The allowed rate that a caller who wants `wanted` is answered at; None where it is none of them.

    A caller who names none gets the service's default where that is allowed, else the strictest of its own.
    """
    near = [rate for rate in rates if math.isclose(rate, default if wanted is None else wanted, rel_tol=1e-9)]
    if near:
        return near[0]
    return min(rates) if wanted is None else None


class Scope(StrEnum):
    """Scopes of the two services; `detect` shows the verdict only, `detect:public` one answer at one rate.

    `read` has texts read by a model, and opens nothing else.
    """

    GENERATE = "generate"
    GENERATE_UNWATERMARKED = "generate:unwatermarked"
    GENERATE_PAYLOAD = "generate:payload"
    READ = "read"
    DETECT = "detect"
    DETECT_EVIDENCE = "detect:evidence"
    DETECT_PUBLIC = "detect:public"


class TokenUse(StrEnum):
    """What a token is for, as its operator says; a policy may leave such texts unmarked."""

    CODE = "code"
    MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: the token, the tenant whose keys it may use, what for, and how much.

    Attributes:
        rates: false positive rates at which it may ask without `detect:evidence`, the coarsest first.
        uses: what it is for.
    """

    token_id: str
    tenant: str
    scopes: frozenset[Scope]
    limits: TokenLimits = field(default_factory=TokenLimits)
    rates: tuple[float, ...] = DEFAULT_RATES
    uses: frozenset[TokenUse] = frozenset()

    @property
    def sees_evidence(self) -> bool:
        """Whether answers to it hold p-values, scores and passages."""
        return Scope.DETECT_EVIDENCE in self.scopes

    @property
    def line(self) -> str:
        """In whose line its work waits: public tokens hold up each other, never the tenant's own.

        No tenant has a name with a space.
        """
        return f"{self.tenant} public" if self.scopes == {Scope.DETECT_PUBLIC} else self.tenant
