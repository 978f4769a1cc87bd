"""How many documents a caller may have examined, and how many variants of one."""

from collections.abc import Sequence
from typing import Protocol

from shared.keys import Principal
from shared.schemas.detection import Document


class DocumentAllowance(Protocol):
    """Asked before a request's documents are looked at."""

    async def take(self, caller: Principal, documents: Sequence[Document]) -> None:
        """Grants the documents of one request.

        Raises:
            TooManyRequests: not now; it says when.
        """


class Unlimited:
    """Grants everything."""

    async def take(self, caller: Principal, documents: Sequence[Document]) -> None:
        """Always."""
