"""What an access token lets its bearer do."""

from dataclasses import dataclass, field
from enum import StrEnum

from ttmark.shared.access.rates import DEFAULT_RATES
from ttmark.shared.access.token_limits import TokenLimits


class Scope(StrEnum):
    """Scopes of the two services; `detect` shows the verdict only."""

    GENERATE = "generate"
    GENERATE_UNWATERMARKED = "generate:unwatermarked"
    GENERATE_BIAS = "generate:bias"
    GENERATE_PAYLOAD = "generate:payload"
    DETECT = "detect"
    DETECT_EVIDENCE = "detect:evidence"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: the token, the tenant whose keys it may use, what for, and how much.

    Attributes:
        rates: false positive rates at which it may ask without `detect:evidence`, the coarsest first.
    """

    token_id: str
    tenant: str
    scopes: frozenset[Scope]
    limits: TokenLimits = field(default_factory=TokenLimits)
    rates: tuple[float, ...] = DEFAULT_RATES

    @property
    def sees_evidence(self) -> bool:
        """Whether answers to it hold p-values, scores and passages."""
        return Scope.DETECT_EVIDENCE in self.scopes
