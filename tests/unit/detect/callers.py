"""Who asks a service in tests of what it keeps for its callers: two tenants, with and without evidence."""

from ttmark.shared.access.scopes import Principal, Scope

_EVIDENCE = frozenset({Scope.DETECT, Scope.DETECT_EVIDENCE})
CALLERS = {
    "mine": Principal("t1", "a", _EVIDENCE),
    "second": Principal("t2", "a", _EVIDENCE),
    "verdict": Principal("t3", "a", frozenset({Scope.DETECT})),
    "verdict2": Principal("t4", "a", frozenset({Scope.DETECT})),
    "stranger": Principal("t5", "b", _EVIDENCE),
    "writer": Principal("t6", "a", frozenset({Scope.GENERATE})),
}


async def known(plain: str) -> Principal:
    """Authenticates a caller by its name."""
    return CALLERS[plain]
