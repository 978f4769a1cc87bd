"""Clients of both services, typed by the shared schemas."""

from ttmark.shared.client.async_client import AsyncClient
from ttmark.shared.client.client import Client
from ttmark.shared.client.errors import (
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
