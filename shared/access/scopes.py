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
