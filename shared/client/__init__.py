"""Clients of both services, typed by the shared schemas."""

from ttmark.shared.client.async_client import AsyncClient
from ttmark.shared.client.calls import (
    AnswerLost,
    ClientError,
    ServiceRefused,
    ServiceUnreachable,
    UnexpectedAnswer,
)
from ttmark.shared.client.client import Client

__all__ = [
    "AnswerLost",
    "AsyncClient",
    "Client",
    "ClientError",
    "ServiceRefused",
    "ServiceUnreachable",
    "UnexpectedAnswer",
]
