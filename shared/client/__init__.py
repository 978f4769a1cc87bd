"""Clients of both services, typed by the shared schemas."""

from ttmark.shared.client.client import AsyncClient, Client
from ttmark.shared.client.outcomes import (
    AnswerLost,
    ClientError,
    ServiceRefused,
    ServiceUnreachable,
    UnexpectedAnswer,
)

__all__ = [
    "AnswerLost",
    "AsyncClient",
    "Client",
    "ClientError",
    "ServiceRefused",
    "ServiceUnreachable",
    "UnexpectedAnswer",
]
