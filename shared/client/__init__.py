"""Clients of both services, typed by the shared schemas."""

from shared.client.async_client import AsyncTTMarkClient
from shared.client.errors import ClientError
from shared.client.sync_client import TTMarkClient

__all__ = ["AsyncTTMarkClient", "ClientError", "TTMarkClient"]
