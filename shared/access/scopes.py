"""What an access token lets its bearer do."""

from dataclasses import dataclass, field
from enum import StrEnum

from ttmark.shared.access.token_limits import DEFAULT_RATES, TokenLimits


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
