"""A client of both services, typed by the shared schemas."""

from shared.client.client import ClientError, TTMarkClient

__all__ = ["ClientError", "TTMarkClient"]
