"""How many tokens a caller may have generated, asked before and settled after."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Protocol

from gen_service.api.merge import Piece
from shared.keys.scopes import Principal


class TokenAllowance(Protocol):
    """Tokens of prompts and completions together."""

    async def take(self, caller: Principal, tokens: int) -> None:
        """Grants the most tokens that a request can come to.

        Raises:
            TooManyRequests: not now; it says when.
        """

    def settle(self, caller: Principal, *, granted: int, used: int) -> None:
        """Takes back what was not used; does not wait, for the request may be cancelled already."""


class Unlimited:
    """Grants everything."""

    async def take(self, caller: Principal, tokens: int) -> None:
        """Always."""

    def settle(self, caller: Principal, *, granted: int, used: int) -> None:
        """There is nothing to take back."""


async def metered(
    events: AsyncGenerator[Piece | None, None], ended: Callable[[int], None]
) -> AsyncGenerator[Piece | None, None]:
    """The same events; once begun, `ended` hears how many tokens came, however they end."""
    tokens = 0
    try:
        async with aclosing(events):
            async for piece in events:
                if piece is not None:
                    tokens += len(piece.delta.token_ids)
                yield piece
    finally:
        ended(tokens)
