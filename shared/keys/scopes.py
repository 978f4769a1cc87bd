"""What an access token lets its bearer do."""

from dataclasses import dataclass, field
from enum import StrEnum

from shared.keys.token_limits import TokenLimits


class Scope(StrEnum):
    """Scopes of the two services; `detect` shows the verdict only."""

    GENERATE = "generate"
    GENERATE_UNWATERMARKED = "generate:unwatermarked"
    DETECT = "detect"
    DETECT_EVIDENCE = "detect:evidence"


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: the token, the tenant whose keys it may use, and what for."""

    token_id: str
    tenant: str
    scopes: frozenset[Scope]
    limits: TokenLimits = field(default_factory=TokenLimits)
