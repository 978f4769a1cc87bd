"""Who asks a service in tests of what it keeps for its callers: two tenants, with and without evidence."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from ttmark.shared.access.scopes import Principal, Scope

T = TypeVar("T")
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
    return CALLERS[plain]


async def once(take: Callable[[], Awaitable[T | None]], do: Callable[[T], Awaitable[None]]) -> bool:
    """Does one thing, if there is one, as `TenantTurns` goes on to."""
    taken = await take()
    if taken is not None:
        await do(taken)
    return taken is not None
